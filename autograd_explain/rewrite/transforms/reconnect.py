"""A way through the graph again where a value left it and came back as a new tensor."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

import libcst as cst

from ...forward_flow import flows_out
from ...model import Edits, Place
from ...program import Program, Source, called_name, own_nodes
from ...program_index import index_of
from ..engine import cst_tools
from ..engine.cst_tools import called_on, pairs, same
from ..engine.edits import merge
from ..engine.imports import imports_at
from ..engine.tree import Statement, Tree, statement_at, statements_in
from .numpy_detour import RETURNS, arrays_beside, in_torch
from .spot import Spot
from .uncut import (
    Patch,
    apply_patches,
    as_dtype_of,
    replacement,
    surrounded,
    tensors_instead_of_copy,
    without_cut,
    without_ending,
)

_LEAVES = frozenset({"detach", "numpy", "item", "tolist", "cpu", "data"})


def reconnected(
    program: Program, places: Sequence[Place], root: Place | None = None, *, whole: bool = False
) -> Edits | None:
    """Leave out what cuts at each place, and what makes a new tensor of the result around it.

    `torch.tensor(h.detach().numpy())` -> `h`, `total + penalty.item()` -> `total + penalty`,
    `torch.tensor([a.item(), b.item()])` -> `torch.stack([a, b])`.  A value that leaves in one
    statement and comes back in another goes through torch on all of its way, also where it leaves
    so beside a given place; None where that cannot be.  With `whole` the places are all of the way.
    A statement that would become `h = h` goes, and so does one that made the loss of the backward
    at `root` a leaf of its own.
    """
    patches: dict[Patch, None] = {}
    for place in places:
        source, node = program.source_at(place), program.expression_at(place)
        if source is None or node is None:
            return None
        run, back = _chain(source, node)
        found: list[Patch] | None = list(_patches(program, source, run, back, whole))
        if not found and called_name(run) == "numpy":
            found = in_torch(program, place, run)
        beside = _beside(program, source, place, run)
        if not found or beside is None:
            return None
        patches.update(dict.fromkeys([*found, *beside]))
    outer = _outermost(patches)
    flags = _flag_of_root(program, root)
    idle = _idle(outer[0]) if len(outer) == 1 else None
    where = None if idle is None else outer[0].source.place(idle.lineno, None, idle)
    edits = apply_patches(outer) if where is None else Spot(program, where).removed()
    return merge(edits, *(Spot(program, flag).removed() for flag in flags))


def _beside(program: Program, source: Source, place: Place, whole: ast.expr) -> list[Patch] | None:
    """The detours that the same value takes elsewhere in this function into the same result."""
    scope, name = source.function_at(place) or source.tree, ast.unparse(without_ending(whole))
    patches: list[Patch] = []
    for left in _departures(source, scope, name) if _is_one_value(scope, name) else ():
        if left is not whole and flows_out(scope, left, whole):
            found = in_torch(program, source.place(left.lineno, None, left), left)
            if found is None:
                return None
            patches += found
    return patches


def _departures(source: Source, scope: ast.AST, operand: str) -> Iterator[ast.expr]:
    """The longest runs that make an array of an expression: `c.detach().cpu().numpy()`."""
    nodes = (n for n in ast.walk(scope) if isinstance(n, ast.expr))
    runs = (_chain(source, n)[0] for n in nodes if ast.unparse(n) == operand)
    return (run for run in runs if called_name(run) == "numpy")


def _is_one_value(scope: ast.AST, name: str) -> bool:
    """Whether a scope binds a name no more than once; else it may be another value."""
    named = [n for n in own_nodes(scope) if isinstance(n, ast.Name) and n.id == name]
    return sum(isinstance(n.ctx, ast.Store) for n in named) <= 1


def _idle(patch: Patch) -> ast.Assign | None:
    """The statement that would become `h = h`."""
    for node in ast.walk(patch.source.tree):
        if isinstance(node, ast.Assign) and patch.source.span(node.value) == patch.span:
            if [ast.unparse(t) for t in node.targets] == [patch.text]:
                return node
    return None


def _patches(
    program: Program, source: Source, whole: ast.expr, back: ast.Call | None, known: bool
) -> Iterator[Patch]:
    where = source.place(whole.lineno, None, whole)
    copies = isinstance(whole, ast.Call) and called_name(whole) in RETURNS  # torch.tensor(x)
    if isinstance(whole, ast.Call) and copies and whole.args:
        yield from tensors_instead_of_copy(program, where, isinstance(whole.args[0], _MANY))
        return
    torch = imports_at(program, where).local("torch")
    again = back or (None if torch is None else _made_again(program, source, whole))
    if again is None:
        if known or not _comes_back(program, source, whole):
            yield from (*without_cut(program, where), *arrays_beside(program, where, whole))
    elif torch is not None and (back is None or isinstance(again.args[0], _MANY)):
        yield from without_cut(program, where)
        yield from tensors_instead_of_copy(program, source.place(again.lineno, None, again), True)
        outer = _wrappers(source, again)[-1]
        yield from () if outer is again else surrounded(source, outer, again)
    elif torch is not None:
        inner = without_cut(program, where)
        text = inner[0].text if [p.span for p in inner] == [where.span] else ""
        if inner and not text:  # a function of NumPy's, under torch's name
            made = source.place(again.lineno, None, again)
            yield from (*inner, *tensors_instead_of_copy(program, made, False))
        elif text:
            outer = _wrappers(source, again)[-1]
            around = source.place(outer.lineno, None, outer)
            yield from replacement(program, around, text + as_dtype_of(source, again))


def _wrappers(source: Source, call: ast.Call) -> list[ast.Call]:
    """The call, and those around it that only make a tensor of its result once more, innermost
    first: `Variable(torch.tensor(x))`."""
    found = [call]
    while (outer := _rebuilding(source.parents.get(found[-1]), found[-1])) is not None:
        found.append(outer)
    return found


def _chain(source: Source, node: ast.expr) -> tuple[ast.expr, ast.Call | None]:
    """The longest run of calls that only leave the graph (`h.detach().numpy()`), and the call
    around it (or around its list) that makes a tensor again."""
    parents = source.parents
    while True:
        parent = parents.get(node)
        if isinstance(parent, ast.Attribute) and parent.attr in _LEAVES:
            call = parents.get(parent)
            node = call if isinstance(call, ast.Call) and call.func is parent else parent
        elif isinstance(parent, _MANY):
            return node, _rebuilding(parents.get(parent), parent)
        else:
            return node, _rebuilding(parent, node)


def _rebuilding(call: ast.AST | None, argument: ast.AST) -> ast.Call | None:
    if not isinstance(call, ast.Call) or not call.args:
        return None
    return call if call.args[0] is argument and called_name(call) in RETURNS else None


def _made_again(program: Program, source: Source, node: ast.expr) -> ast.Call | None:
    """The one call that makes a tensor of the list that holds the value: `torch.tensor(terms)` of
    `terms = [….item() for …]` and of `terms.append(….item())`."""
    names, held = _lists_of(source, node), source.parents.get(node)
    calls = [
        (where, call)
        for where, call in index_of(program).calls(*RETURNS, of="torch")
        if call.args and ast.unparse(call.args[0]) in names
    ]
    scope = source.function_around(node)
    numbers = any(isinstance(e, ast.Constant) for e in getattr(held, "elts", ()))
    if len(calls) != 1 or numbers or calls[0][0] is not source:
        return None
    return calls[0][1] if source.function_around(calls[0][1]) is scope else None


def _lists_of(source: Source, node: ast.expr) -> set[str]:
    """The names of the list that a value is put into."""
    held = source.parents.get(node)
    statement = None if held is None else source.parents.get(held)
    if isinstance(held, _MANY) and isinstance(statement, ast.Assign):
        return {ast.unparse(target) for target in statement.targets}
    if isinstance(held, ast.Call) and called_name(held) == "append" and held.args == [node]:
        return {ast.unparse(held.func.value)} if isinstance(held.func, ast.Attribute) else set()
    return set()


def _comes_back(program: Program, source: Source, node: ast.expr) -> bool:
    """Whether the value, or a list of it, is kept under a name and made a tensor, or computed with
    by NumPy."""
    names = _lists_of(source, node)
    statement = source.parents.get(node)
    if isinstance(statement, ast.Assign) and statement.value is node:
        names = {ast.unparse(t) for t in statement.targets}
    if isinstance(node, ast.Call) and called_name(node) in ("numpy", "tolist"):
        return True
    if isinstance(statement, ast.Call) and names and not _are_read(source, names):
        return True  # a list that others read, nobody knows how
    calls = index_of(program).calls(*RETURNS, of="torch")
    read = (n for _, call in calls for given in call.args for n in ast.walk(given))
    return any(isinstance(n, (ast.Name, ast.Attribute)) and ast.unparse(n) in names for n in read)


def _are_read(source: Source, names: set[str]) -> bool:
    """Whether one of the names is read in a source, other than to put more into it."""
    return any(
        isinstance(n, (ast.Name, ast.Attribute))
        and isinstance(n.ctx, ast.Load)
        and getattr(source.parents.get(n), "attr", "") != "append"
        and ast.unparse(n) in names
        for n in source.nodes
    )


_MANY = (ast.List, ast.ListComp, ast.Tuple)


def _outermost(patches: Iterable[Patch]) -> list[Patch]:
    """Of patches one inside the other the outer ones: two cuts of one run give both."""
    kept = list(patches)
    spans = [(p.source, p.span) for p in kept]
    return [
        p
        for p in kept
        if not any(s == p.source and q != p.span and q.holds(p.span) for s, q in spans)
    ]


# -- `loss.requires_grad = True` before `loss.backward()`, which only silences a cut graph ------


def _flag_of_root(program: Program, place: Place | None) -> list[Place]:
    """The statements that make the loss of the backward on this line a leaf that requires
    grad, where the same block computes that loss: a result in the graph needs no flag."""
    tree, root = statement_at(program, place)
    loss, (inside, at) = called_on(root, "backward"), tree.siblings(root)
    if loss is None:
        return []
    code, earlier = tree.code(loss), inside[:at]
    values = [v for s in earlier for target, v in pairs(s) if same(tree, target, code)]
    computed = (v for v in values if isinstance(v, (cst.Call, cst.BinaryOperation)))
    if not any(cst_tools.called_name(v) not in _MAKE_LEAVES for v in computed):
        return []
    return [tree.place(s) for s in earlier if _is_flag(tree, s, code)]


_MAKE_LEAVES = ("Variable", "tensor", "as_tensor", "requires_grad_")


def _is_flag(tree: Tree, statement: Statement, name: str) -> bool:
    """`loss.requires_grad = True`, `loss.requires_grad_()`, also where `if not loss.requires_grad`
    stands before it."""
    if isinstance(statement, cst.If):
        asked = same(tree, statement.test, f"not {name}.requires_grad")
        inside = statements_in(statement.body) if statement.orelse is None else []
        return asked and bool(inside) and all(_is_flag(tree, s, name) for s in inside)
    call = statement.value if isinstance(statement, cst.Expr) else None
    flags = [v for t, v in pairs(statement) if same(tree, t, f"{name}.requires_grad")]
    calls = [f"{name}.requires_grad_({given})" for given in ("", "True")]
    called = call is not None and any(same(tree, call, code) for code in calls)
    return called or any(same(tree, v, "True") for v in flags)
