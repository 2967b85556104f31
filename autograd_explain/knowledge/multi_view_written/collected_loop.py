"""A loop that writes the elements it goes through -> one that collects new elements.

`for row in out: row /= row.norm()` writes views that were made at once.  The elements are computed
anew, collected, and the name of what was gone through stands for them from then on.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from autograd_explain.model import Place
from autograd_explain.program import Program
from autograd_explain.program_index import index_of
from autograd_explain.rewrite import Edits
from autograd_explain.rewrite.analysis.effects import (
    bound_in,
    can_rebind,
    fresh,
    read_later,
    used_names,
)
from autograd_explain.rewrite.analysis.inplace_writes import base_of, is_given_anew, is_view
from autograd_explain.rewrite.engine.cst_tools import (
    dotted,
    expression,
    keyword,
    make,
    positional,
    targets,
    walk,
)
from autograd_explain.rewrite.engine.draft import Draft
from autograd_explain.rewrite.engine.tree import Tree, statements_in, tree_at
from autograd_explain.rewrite.transforms.out_of_place import every_write

_JUMPS = (cst.Break, cst.Continue, cst.Return, cst.Yield)
#: What makes the views, and what puts the pieces together again.
_JOINED_BY = {"unbind": "stack", "chunk": "cat", "split": "cat", "tensor_split": "cat"}


@dataclass(frozen=True, eq=False)
class _Loop:
    """`name` is the written element; `whole` what its new elements become part of, by `join`
    (a function of torch's, "" for a list) along `dim`."""

    loop: cst.For
    name: str
    whole: cst.BaseExpression
    join: str
    dim: cst.BaseExpression | None = None


def collected_loop(
    program: Program, place: Place, name: str, *, tensor: bool = False
) -> Edits | None:
    """Collect new elements where the loop around `place` writes its element `name`.

    `tensor` says that the loop goes through a tensor itself, whose rows are stacked again; else
    through a list of views, or a call that makes them (`x.unbind(1)`).  None where the loop leaves
    early, reads the whole as it goes, or the whole cannot be given a new value.
    """
    tree = tree_at(program, place)
    torch = tree.imports.local("torch")
    if torch is None:
        return None
    found = _found(program, tree, place, name, tensor, torch)
    if found is None or is_given_anew(tree, found.loop.body, name):
        return None
    taken = _names_of_cells(program)
    edits, store = _collected(tree, found, torch, taken, copied=False)
    # The element is read at the end now, so that a new value of its name reaches the whole.
    edits = every_write(program, edits, place, name, lambda t: _ending_with(t, store))
    # A write to a part of the element goes to a copy.
    return edits or _collected(tree, found, torch, taken, copied=True)[0]


def _collected(
    tree: Tree, found: _Loop, torch: str, taken: set[str], *, copied: bool
) -> tuple[Edits | None, str]:
    """The loop that collects its elements, and the statement that it ends with."""
    draft, loop = Draft(tree), found.loop
    if copied:
        first = statements_in(loop.body)[0]
        draft.before(first, [make(f"{found.name} = {found.name}.clone()")])
    plain = isinstance(loop.target, cst.Name)
    if plain:
        store = _appended(tree, draft, found, torch)
    else:
        store = _stored(tree, draft, found, torch, taken)
    return (draft.edits() if store else None), store


def _names_of_cells(program: Program) -> set[str]:
    return {n.id for _, n in index_of(program).nodes(ast.Name)}


def _found(
    program: Program, tree: Tree, place: Place, name: str, tensor: bool, torch: str
) -> _Loop | None:
    loop = _around(tree, place, name)
    if loop is None or loop.orelse is not None or any(isinstance(n, _JUMPS) for n in walk(loop)):
        return None
    source = _element_source(loop.iter, loop.target, name)
    if source is None or read_later(tree, loop, name):
        return None
    plain = _Loop(loop, name, source, "stack" if tensor else "")
    found = _of_call(loop, name, source, torch) if isinstance(source, cst.Call) else plain
    path = None if found is None else dotted(found.whole)
    if found is None or (tensor and found is not plain):
        return None
    if path is None or path.partition(".")[0] in used_names(loop.body) or is_view(found.whole):
        return None
    if sum(dotted(n) == path for n in walk(loop.iter)) > 1:
        return None  # `zip(out, [first, *out])`: a later round sees what an earlier one wrote
    if _is_part_of_read(tree, loop, path):
        return None
    return found if can_rebind(tree, loop, found.whole) else None


def _is_part_of_read(tree: Tree, loop: cst.For, path: str) -> bool:
    """Whether the whole is a view of a tensor that is read later: `top = x[:2]`, and x after it."""
    for node in tree.statements:
        if not isinstance(node, cst.Assign) or tree.start(node) > tree.start(loop):
            continue
        base = base_of(node.value)
        if base is node.value or not isinstance(base, cst.Name) or base.value == path:
            continue
        if any(dotted(t) == path for t in targets(node)) and read_later(tree, loop, base.value):
            return True
    return False


def _around(tree: Tree, place: Place, name: str) -> cst.For | None:
    """The loop around a statement whose target is or holds the name."""
    statement_here = tree.statement(place)
    for outer in () if statement_here is None else tree.ancestors(statement_here):
        if isinstance(outer, (cst.FunctionDef, cst.Lambda)):
            return None
        if isinstance(outer, cst.For) and name in used_names(outer.target):
            return outer
    return None


def _element_source(
    iterated: cst.BaseExpression, target: cst.BaseExpression, name: str
) -> cst.BaseExpression | None:
    """`xs` in `for i, (a, x) in enumerate(zip(others, xs))`, for the name x."""
    if isinstance(target, cst.Name):
        return iterated if target.value == name else None
    if not isinstance(target, cst.Tuple) or not isinstance(iterated, cst.Call):
        return None
    given, called = positional(iterated), dotted(iterated.func)
    for number, element in enumerate(target.elements):
        if name in used_names(element.value):
            if called == "zip" and number < len(given):
                return _element_source(given[number].value, element.value, name)
            if called == "enumerate" and number == 1 and len(iterated.args) == 1:
                return _element_source(given[0].value, element.value, name)
    return None


def _of_call(loop: cst.For, name: str, call: cst.Call, torch: str) -> _Loop | None:
    found = parts_of(call, torch)
    return None if found is None else _Loop(loop, name, *found)


def parts_of(
    call: cst.Call, torch: str
) -> tuple[cst.BaseExpression, str, cst.BaseExpression | None] | None:
    """`x.unbind(1)`, `torch.split(x, 2, dim=1)`: x, how its parts are joined, and along what."""
    if not isinstance(call.func, cst.Attribute):
        return None
    kind, owner = call.func.attr.value, call.func.value
    given = [a.value for a in positional(call)]
    if kind not in _JOINED_BY:
        return None
    if dotted(owner) == torch:
        if not given:
            return None
        owner, given = given[0], given[1:]
    at = 0 if kind == "unbind" else 1
    named = keyword(call, "dim")
    dim = named.value if named is not None else given[at] if at < len(given) else None
    return owner, _JOINED_BY[kind], dim


def _appended(tree: Tree, draft: Draft, found: _Loop, torch: str) -> str:
    """A list that every round appends to."""
    items = fresh(tree, found.loop, f"{found.name}s")
    draft.before(found.loop, [make(f"{items} = []")])
    _at_end(draft, found.loop, make(f"{items}.append({found.name})"))
    draft.after(found.loop, [_joined(found, torch, items)])
    return f"{items}.append({found.name})"


def _stored(tree: Tree, draft: Draft, found: _Loop, torch: str, taken: set[str]) -> str:
    """A list whose elements are replaced by their numbers: `zip` may end before the list does."""
    loop = found.loop
    own = found.whole.value if not found.join and isinstance(found.whole, cst.Name) else ""
    items = own or fresh(tree, loop, f"{found.name}s")
    draft.before(loop, [make(f"{items} = list({{x}})", x=_iterated(found))])
    counted = isinstance(loop.iter, cst.Call) and dotted(loop.iter.func) == "enumerate"
    number = _number(loop) if counted else _free(tree, loop, taken)
    if number is None or number in bound_in(loop.body):
        return ""
    if not counted:
        target = loop.target
        assert isinstance(target, cst.Tuple)
        inner = target if target.lpar else _bracketed(target)
        draft.replace(target, _pair(cst.Name(number), inner))
        draft.replace(loop.iter, expression("enumerate({x})", x=loop.iter))
    _at_end(draft, loop, make(f"{items}[{number}] = {found.name}"))
    if not own:
        draft.after(loop, [_joined(found, torch, items)])
    return f"{items}[{number}] = {found.name}"


def _iterated(found: _Loop) -> cst.BaseExpression:
    source = _element_source(found.loop.iter, found.loop.target, found.name)
    assert source is not None
    return source


def _number(loop: cst.For) -> str | None:
    target = loop.target
    first = target.elements[0].value if isinstance(target, cst.Tuple) else None
    return first.value if isinstance(first, cst.Name) else None


def _free(tree: Tree, loop: cst.For, taken: set[str]) -> str | None:
    """A name for the number; outside functions the other cells may use a name too."""
    scope = tree.scope_of(loop)
    used = used_names(scope) | (taken if isinstance(scope, cst.Module) else set())
    return next((n for n in ("i", "j", "k", "position") if n not in used), None)


def _pair(first: cst.BaseExpression, second: cst.BaseExpression) -> cst.Tuple:
    return cst.Tuple([cst.Element(first), cst.Element(second)], lpar=(), rpar=())


def _bracketed(target: cst.Tuple) -> cst.Tuple:
    return target.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def _joined(found: _Loop, torch: str, items: str) -> cst.BaseSmallStatement:
    """`out = torch.stack(rows)`, the name for the list itself where it was one."""
    if not found.join:
        return make(f"{{x}} = {items}", x=found.whole)
    return joined(found.whole, f"{torch}.{found.join}", items, found.dim)


def joined(
    whole: cst.BaseExpression, join: str, items: str, dim: cst.BaseExpression | None
) -> cst.BaseSmallStatement:
    """`x = torch.cat([left, right], dim=-1)`."""
    nodes = {"x": whole} if dim is None else {"x": whole, "d": dim}
    return make(f"{{x}} = {join}({items}{'' if dim is None else ', dim={d}'})", **nodes)


def _at_end(draft: Draft, loop: cst.For, new: cst.BaseSmallStatement) -> None:
    draft.after(statements_in(loop.body)[-1], [new])


def _ending_with(tree: Tree, store: str) -> Iterator[cst.CSTNode]:
    """The bodies of the loops that end with a statement."""
    for loop in tree.statements:
        if isinstance(loop, cst.For) and tree.code(statements_in(loop.body)[-1]) == store:
            yield loop.body
