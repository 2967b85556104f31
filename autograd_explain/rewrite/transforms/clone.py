"""Copies where memory is shared: before a write, of what is saved, of an alias."""

from __future__ import annotations

import libcst as cst

from ...model import Edits, Place
from ...program import Program
from ..analysis.effects import can_rebind, fresh, read_later
from ..analysis.inplace_writes import base_of, is_view, without_data, written_in
from ..analysis.written_target import written_parts
from ..engine.cst_tools import (
    calls_in,
    dotted,
    find,
    head,
    is_starred,
    make,
    method,
    method_name,
    parse,
    repeatable,
    same,
    single_targets,
    walk,
    whole_value,
)
from ..engine.draft import Draft, only
from ..engine.tree import Statement, Tree, statement_at, statements_in, tree_at
from .grad_mode import outermost_block


def clone_before_write(program: Program, place: Place, target: str | None = None) -> Edits | None:
    """Give the written tensor memory of its own first: `x = x.clone()` on a line before.

    `target` names the tensor where the statement does not show it (`self.enqueue(k)`) or shows
    several.  A write through `.data` is made an ordinary write.
    """
    tree = tree_at(program, place)
    return only(
        _cloned_first(tree, statement, written)
        for statement in tree.candidates(place)
        if (written := _written(tree, statement, target)) is not None
    )


def functional_write(program: Program, place: Place, target: str | None = None) -> Edits | None:
    """A write to a part of a tensor that leaves the old one alone: `x = x.clone()` goes on a line
    before it, which is right for every index and value."""
    tree = tree_at(program, place)
    written = (p for s in tree.candidates(place) for p in written_in(tree, s))
    return clone_before_write(program, place, target) if any(map(is_view, written)) else None


def clone_operand(
    program: Program, place: Place | None, operand: str, *, detached: bool = False
) -> Edits | None:
    """Let the statement at `place` use (and save) a copy: `q @ queue` -> `q @ queue.clone()`;
    `detached` without the graph that a write of an earlier round gave it."""
    tree = tree_at(program, place)
    if tree.imports.full(operand).partition(".")[0] in ("torch", "numpy"):
        return None  # a module or a function, no tensor
    call = "detach().clone()" if detached else "clone()"
    return only(_copies_of(tree, find(tree, s, operand), call) for s in tree.candidates(place))


def _copies_of(tree: Tree, found: list[cst.BaseExpression], call: str) -> Draft | None:
    draft = Draft(tree)
    for node in found:
        draft.behind(node, call)
    return draft if found and not any(is_starred(tree, node) for node in found) else None


def clone_result(program: Program, place: Place | None) -> Edits | None:
    """The program goes on with a copy of a result that the operation itself saved.

    `out = self.relu(out)` -> `out = self.relu(out).clone()`; `place` is the operation's statement,
    or its span the operation.
    """
    tree = tree_at(program, place)
    values = tree.at(place)[:1] or [
        v for s in tree.candidates(place) if (v := whole_value(s)) is not None
    ]
    if len(values) != 1 or not isinstance(values[0], (cst.Call, cst.BinaryOperation)):
        return None
    return Draft(tree).behind(values[0], "clone()").edits()


def clone_alias(program: Program, place: Place | None) -> Edits | None:
    """Make the alias that the statement creates a copy.

    `prob.detach()` -> `prob.detach().clone()`, `x.data` -> `x.detach().clone()`,
    `torch.from_numpy(b)` -> `torch.from_numpy(b.copy())`, `.numpy()` -> `.numpy().copy()`; of a
    view (`x[0]`) where the place has its span.
    """
    tree = tree_at(program, place)

    def meant(statement: Statement) -> list[cst.BaseExpression]:
        found = _aliases(tree, statement)
        return [n for n in tree.at(place) if is_view(n) or n in found][:1] or found

    return only(_copied(tree, n) for s in tree.candidates(place) for n in meant(s))


def view_of_read_later(program: Program, place: Place, write_place: Place) -> bool:
    """Whether what a view at `place` looks into is read after the write through that view.

    `rows = h[:]`, `rows += 1`, `return h`: then the write is meant to reach h.
    """
    tree, made = statement_at(program, place)
    write = tree.statement(write_place)
    if write is None or not isinstance(made, cst.Assign):
        return False
    base = base_of(made.value)
    words = {n.value for n in walk(made.value) if isinstance(n, cst.Name)}
    if base is made.value or not isinstance(base, cst.Name) or words & {"detach", "data"}:
        return False  # `x.detach()[0]`, `x.data.view(-1)` look at the numbers
    same_scope = tree.scope_of(write) is tree.scope_of(made)
    return same_scope and read_later(tree, write, base.value)


def clone_unpacked(program: Program, place: Place, target: str) -> Edits | None:
    """`a, b = torch.split(x, 2)` -> the same, then `b = b.clone()`: b is a view no longer."""
    tree, statement = statement_at(program, place)
    chosen = [leaf for leaf in single_targets(statement) if same(tree, leaf, target)]
    if len(chosen) != 1 or not repeatable(chosen[0]):
        return None
    new = make("{x} = {x}.clone()", x=chosen[0])
    if isinstance(statement, cst.For):
        return Draft(tree).before(statements_in(statement.body)[0], [new]).edits()
    if isinstance(statement, cst.Assign):
        return Draft(tree).after(statement, [new]).edits()
    return None


def clone_argument(program: Program, place: Place, callee: str) -> Edits | None:
    """One call of what writes its first argument gets a copy: `act(x)` -> `act(x.clone())`."""
    tree = tree_at(program, place)
    found = (call for statement in tree.candidates(place) for call in calls_in(statement))
    calls = [call for call in found if same(tree, call.func, callee)]
    if len(calls) != 1 or not calls[0].args or calls[0].args[0].star or calls[0].args[0].keyword:
        return None
    return Draft(tree).behind(calls[0].args[0].value, "clone()").edits()


def _written(tree: Tree, statement: Statement, target: str | None) -> cst.BaseExpression | None:
    """The tensor to copy: what the statement writes to, or `target` where it occurs in it."""
    parts = written_parts(tree, statement, target)
    if len(parts) == 1:
        return parts[0]
    return None if target is None else parse(target)


def _cloned_first(tree: Tree, statement: Statement, written: cst.BaseExpression) -> Draft:
    draft = Draft(tree)
    name = without_data(written)
    if not isinstance(name, (cst.Name, cst.Attribute, cst.Subscript)) or not repeatable(name):
        return draft
    if tree.block_of(statement) is None or isinstance(statement, cst.While):
        return draft
    if not can_rebind(tree, statement, name):
        return draft
    copied = make("{x} = {x}.clone()", x=name)
    value = _value_reading(tree, statement, name)
    if value is not None:
        if not isinstance(statement, (cst.Assign, cst.AugAssign)):
            if not isinstance(statement, cst.Expr) or _reads_beside(tree, statement, name, value):
                return draft
        # What the value's operations save must be the old tensor, not the copy about to be written.
        local = cst.Name(fresh(tree, statement, "value"))
        draft.before(statement, [make("{v} = {x}", v=local, x=value), copied])
        draft.replace(value, local)
    else:
        # Made under no_grad the copy would have no graph for those who read it afterwards.
        draft.before(outermost_block(tree, statement, name), [copied])
    for node in head(statement):
        if isinstance(node, cst.Attribute) and node.attr.value == "data":
            if same(tree, node.value, tree.code(name)):
                draft.replace(node, node.value)
    return draft


def _value_reading(
    tree: Tree, statement: Statement, name: cst.BaseExpression
) -> cst.BaseExpression | None:
    """The value or argument that computes with the written tensor in the writing statement."""
    code = tree.code(name)
    if isinstance(statement, (cst.Assign, cst.AugAssign)):
        values = [statement.value]
    else:
        values = [n.value for n in head(statement) if isinstance(n, cst.Arg)]
        values = [v for v in values if not same(tree, v, code)]
    for value in values:
        computes = not is_view(value) and not same(tree, value, code)
        if computes and any(same(tree, n, code) for n in walk(value)):
            return value
    return None


def _reads_beside(
    tree: Tree, statement: Statement, name: cst.BaseExpression, value: cst.BaseExpression
) -> bool:
    """Whether other arguments than `value` compute with what the statement writes, too."""
    everywhere, inside = (
        sum(same(tree, node, tree.code(name)) for node in nodes)
        for nodes in (head(statement), walk(value))
    )
    return everywhere - inside != 1


def _aliases(tree: Tree, statement: Statement) -> list[cst.BaseExpression]:
    """Expressions that give tensor memory a second name and do not go on to copy it."""
    return [
        node
        for node in head(statement)
        if isinstance(node, (cst.Call, cst.Attribute)) and _makes_alias(tree, node)
        if not isinstance(tree.parents[node], cst.Attribute)
    ]


def _makes_alias(tree: Tree, node: cst.Call | cst.Attribute) -> bool:
    if isinstance(node, cst.Attribute):
        parent = tree.parents[node]
        called = isinstance(parent, cst.Call) and parent.func is node
        return node.attr.value == "data" and not called
    if tree.imports.full(dotted(node.func)) in _SHARING:
        return bool(node.args)
    return method_name(node) in {"detach", "numpy"} and not node.args


#: They look at the memory of what they are given.
_SHARING = frozenset({"torch.from_numpy", "torch.as_tensor", "torch.asarray"})


def _copied(tree: Tree, node: cst.BaseExpression) -> Draft:
    draft = Draft(tree)
    if isinstance(node, cst.Attribute) and node.attr.value == "data":
        return draft.replace(node, method(node.value, "detach().clone()"))
    full = tree.imports.full(dotted(node.func)) if isinstance(node, cst.Call) else ""
    if isinstance(node, cst.Call) and full == "torch.from_numpy":
        return draft.behind(node.args[0].value, "copy()")
    is_array = full not in _SHARING and method_name(node) == "numpy"
    return draft.behind(node, "copy()" if is_array else "clone()")
