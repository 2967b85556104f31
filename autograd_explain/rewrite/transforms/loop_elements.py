"""Elements of a list that a loop writes to: each replaced in the list instead."""

from __future__ import annotations

import libcst as cst

from ...model import Edits, Place
from ...program import Program
from ..analysis.effects import is_own_variable, used_names
from ..analysis.inplace_writes import inplace_calls
from ..analysis.written_target import assigned
from ..engine.cst_tools import dotted, expression, make, method_name, parse, walk
from ..engine.draft import Draft
from ..engine.imports import Imports
from ..engine.tree import Statement, Tree, statement_at
from .out_of_place import operated

_Written = tuple[str, cst.BaseExpression]
#: What gives several tensors at once gives a tuple.
_TUPLES = frozenset("grad split chunk unbind tensor_split".split())


def element_replaced(program: Program, place: Place) -> Edits | None:
    """`for x in xs: x += a` -> `for i, x in enumerate(xs): xs[i] = x + a`: whoever reads the list
    finds the new values, and the tensors that were in it stay as they were."""
    tree, statement = statement_at(program, place)
    written = None if statement is None else _written(program, tree, statement)
    if statement is None or written is None:
        return None
    name, value = written
    loop = _loop(tree, statement, name)
    elements = None if loop is None else dotted(loop.iter)
    if loop is None or elements is None or not _may_be_changed(tree, statement, elements):
        return None
    used = used_names(tree.scope_of(statement))
    index = next((n for n in ("i", "j", "k", "index") if n not in used), None)
    header = parse(f"{index}, {name}")
    if index is None or header is None:
        return None
    draft = Draft(tree).replace(loop.target, header)
    draft.replace(loop.iter, expression("enumerate({x})", x=loop.iter))
    stored = f"{elements}[{index}] = "
    if _read_behind(tree, loop, statement, name):
        new = [make(f"{name} = {{v}}", v=value), make(f"{stored}{name}")]
    else:
        new = [make(f"{stored}{{v}}", v=value)]
    return draft.instead(statement, new).edits()


def _may_be_changed(tree: Tree, statement: Statement, elements: str) -> bool:
    """Whether a new element reaches those alone who look at the list here: not a caller's list,
    and none that the text makes a tuple."""
    if "." in elements:
        return True
    scope = tree.scope_of(statement)
    if isinstance(scope, cst.FunctionDef) and not is_own_variable(tree, statement, elements):
        return False
    values = assigned(tree, scope, elements)
    return not any(isinstance(v, cst.Tuple) or method_name(v) in _TUPLES for v in values)


def _written(program: Program, tree: Tree, statement: Statement) -> _Written | None:
    """The name that a statement writes in place, and the same value computed anew."""
    if isinstance(statement, cst.AugAssign) and isinstance(statement.target, cst.Name):
        return statement.target.value, operated(statement.target, statement, statement.value)
    if not isinstance(statement, cst.Expr):
        return None
    calls = inplace_calls(tree, Imports.of(program, tree.source), statement)
    whole = (c for c in calls if c.node is statement.value and isinstance(c.target, cst.Name))
    return next(((tree.code(c.target), c.value) for c in whole if not c.hidden), None)


def _loop(tree: Tree, statement: Statement, name: str) -> cst.For | None:
    """The loop of the same function whose variable it is."""
    for around in tree.ancestors(statement):
        if isinstance(around, (cst.FunctionDef, cst.ClassDef)):
            return None
        if isinstance(around, cst.For) and dotted(around.target) == name:
            return around
    return None


def _read_behind(tree: Tree, loop: cst.For, statement: Statement, name: str) -> bool:
    """Whether the loop's body reads the name after the statement."""
    end = tree.span(statement)
    return any(
        isinstance(node, cst.Name)
        and node.value == name
        and tree.start(node) > (end.end_line, end.end_column)
        for node in walk(loop.body)
    )
