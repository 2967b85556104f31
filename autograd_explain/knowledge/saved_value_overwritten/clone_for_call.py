"""A copy made by the caller, where a function writes to the tensor it is given.

`zero_small(h)` changes h for everyone who reads it: a new tensor inside the function would never
reach the caller.  `h = h.clone()` before the call keeps the change and spares what was saved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

from autograd_explain.arguments import bind
from autograd_explain.model import Place
from autograd_explain.program import Program
from autograd_explain.rewrite import Edits
from autograd_explain.rewrite.analysis.effects import can_rebind, is_own_local, read_later
from autograd_explain.rewrite.analysis.inplace_writes import is_view
from autograd_explain.rewrite.analysis.written_target import written_tensor
from autograd_explain.rewrite.engine.cst_tools import (
    dotted,
    given_by,
    head,
    make,
    method,
    positional_parameters,
    repeatable,
    runs_once,
    single_targets,
    walk,
)
from autograd_explain.rewrite.engine.draft import Draft
from autograd_explain.rewrite.engine.tree import Statement, Tree, tree_at
from autograd_explain.rewrite.transforms.grad_mode import outermost_block


@dataclass(frozen=True, eq=False)
class _Argument:
    """What a call hands to a parameter, in the statement that makes the call."""

    tree: Tree
    statement: Statement
    node: cst.BaseExpression


def clone_for_call(
    program: Program, place: Place, name: str, chain: Sequence[Place]
) -> Edits | None:
    """Give the tensor that the function at `place` writes to (its parameter `name`) a copy before
    the call; `chain` are the lines that led to `place`, outermost first.

    A caller that only hands on its own parameter is passed over.  None where the call or the
    argument is not to be told, and where the function gave the name a value of its own.
    """
    for line in reversed(chain):
        given = _argument(program, place, name, line)
        if given is None:
            return None
        if not isinstance(given.node, cst.Name) or not _only_handed_on(given):
            return _copied(program, given)
        place, name = line, given.node.value
    return None


def _argument(program: Program, place: Place, name: str, line: Place) -> _Argument | None:
    inner = tree_at(program, place)
    written = inner.statement(place)
    if written is None:
        return None
    function = inner.scope_of(written)
    if not isinstance(function, cst.FunctionDef) or _is_generator(inner, function):
        return None
    if _bound_before(inner, function, written, name):
        return None
    outer = tree_at(program, line)
    found = [
        _Argument(outer, statement, node)
        for statement in outer.candidates(line)
        for call in head(statement)
        if isinstance(call, cst.Call) and _may_call(inner, call, function)
        if (node := _given(inner, call, function, name)) is not None
    ]
    return found[0] if len(found) == 1 else None


def _bound_before(tree: Tree, function: cst.FunctionDef, at: Statement, name: str) -> bool:
    """Whether the function binds the name before it writes: then it is no longer the argument."""
    return any(
        isinstance(leaf, cst.Name) and leaf.value == name and tree.start(node) < tree.start(at)
        for node in walk(function.body)
        if isinstance(node, (cst.Assign, cst.AnnAssign, cst.For, cst.With))
        for leaf in single_targets(node)
    )


def _is_generator(tree: Tree, function: cst.FunctionDef) -> bool:
    """A generator writes while the caller goes on, not when it is called."""
    yields = (n for n in walk(function.body) if isinstance(n, cst.Yield))
    return any(tree.scope_of(n) is function for n in yields)


def _may_call(tree: Tree, call: cst.Call, function: cst.FunctionDef) -> bool:
    name = function.name.value
    called = call.func.attr.value if isinstance(call.func, cst.Attribute) else ""
    called = call.func.value if isinstance(call.func, cst.Name) else called
    if name in ("forward", "__call__"):
        return called != ""
    cls = tree.scope_of(function)
    own = name == "__init__" and isinstance(cls, cst.ClassDef) and cls.name.value == called
    return called == name or own


def _given(
    tree: Tree, call: cst.Call, function: cst.FunctionDef, name: str
) -> cst.BaseExpression | None:
    """The argument for a parameter, by its name or its position."""
    skipped = 1 if _is_bound(tree, call, function) else 0
    return bind(positional_parameters(function)[skipped:], given_by(call)).get(name)


def _is_bound(tree: Tree, call: cst.Call, function: cst.FunctionDef) -> bool:
    """Whether the call fills in the first parameter: `net.f(x)`, not `Net.f(net, x)`."""
    cls = tree.scope_of(function)
    decorators = {dotted(d.decorator) for d in function.decorators}
    if not isinstance(cls, cst.ClassDef) or "staticmethod" in decorators:
        return False
    owner = dotted(call.func.value) if isinstance(call.func, cst.Attribute) else None
    by_class = (owner or "").rpartition(".")[2] == cls.name.value
    return "classmethod" in decorators or not by_class


def _only_handed_on(given: _Argument) -> bool:
    """Whether the argument is the caller's own parameter, which it does not give back."""
    scope = given.tree.scope_of(given.statement)
    assert isinstance(given.node, cst.Name)
    name = given.node.value
    if not isinstance(scope, cst.FunctionDef):
        return False
    if name not in {n.name.value for n in walk(scope.params) if isinstance(n, cst.Param)}:
        return False
    if _bound_before(given.tree, scope, given.statement, name):
        return False
    results = [n for n in walk(scope.body) if isinstance(n, cst.Return) and n.value is not None]
    return not any(isinstance(n, cst.Name) and n.value == name for r in results for n in walk(r))


def _copied(program: Program, given: _Argument) -> Edits | None:
    tree, statement = given.tree, given.statement
    part = written_tensor(tree, cst.Expr(given.node), given.node)
    if part is None or not isinstance(part, (cst.Name, cst.Attribute, cst.Subscript)):
        return None
    if not repeatable(part) or (is_view(part) and not isinstance(part, cst.Subscript)):
        return None
    if not runs_once(tree, given.node, statement):
        return None
    draft = Draft(tree)
    if _is_done_with(tree, statement, part):
        draft.replace(part, method(part, "clone()"))
        return draft.edits()
    at = outermost_block(tree, statement, part)
    if tree.block_of(at) is None or isinstance(at, cst.While):
        return None
    if not can_rebind(tree, at, part):
        return None
    if isinstance(part, cst.Name) and _has_other_reader(tree, at, part.value):
        return None
    draft.before(at, [make("{x} = {x}.clone()", x=part)])
    return draft.edits()


def _has_other_reader(tree: Tree, at: Statement, name: str) -> bool:
    """Whether another name for the tensor (`kept = h`, `state = {"h": h}`) is read after the call:
    the change has to reach it too."""
    for node in tree.statements:
        if not isinstance(node, cst.Assign) or tree.start(node) >= tree.start(at):
            continue
        if tree.scope_of(node) is not tree.scope_of(at) or not _holds(node.value, name):
            continue
        others = {x.value for x in single_targets(node) if isinstance(x, cst.Name)}
        if name not in others and any(read_later(tree, at, other) for other in others):
            return True
    return False


def _holds(value: cst.BaseExpression, name: str) -> bool:
    """Whether a value is what a name stands for, or a display with it as an element."""
    if isinstance(value, (cst.List, cst.Tuple, cst.Dict)):
        return any(_holds(e.value, name) for e in value.elements)
    return isinstance(value, cst.Name) and value.value == name


def _is_done_with(tree: Tree, statement: Statement, part: cst.BaseExpression) -> bool:
    """Whether nobody in the function reads the name after the call."""
    if not isinstance(part, cst.Name) or not is_own_local(tree, statement, part):
        return False
    return not read_later(tree, statement, part.value)
