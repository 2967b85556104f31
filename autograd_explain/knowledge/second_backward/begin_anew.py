"""A state that each round should begin with as the first one did: rounds that have nothing to do
with each other carry nothing over."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import libcst as cst

from autograd_explain.model import Place
from autograd_explain.program import Program
from autograd_explain.program_index import index_of
from autograd_explain.rewrite.analysis.effects import effects
from autograd_explain.rewrite.engine.cst_tools import dotted, targets, unpacked, walk
from autograd_explain.rewrite.engine.draft import Draft
from autograd_explain.rewrite.engine.proposal import Edits
from autograd_explain.rewrite.engine.tree import Statement, Tree, statements_in, tree_at

_ROUND = (cst.For, cst.While)
_PASSED_ON = frozenset({"enumerate", "tqdm", "zip"})


def begun_anew(program: Program, backward: Place, state: str) -> Edits | None:
    """The statement that gave the state its first value moved into the loop around the backward,
    where the text says that its rounds are apart: a loop within goes over the steps of each, or a
    loader gives them in any order.  None where it does not."""
    tree = tree_at(program, backward)
    statement = tree.statement(backward)
    if statement is None:
        return None
    loop = next((a for a in tree.ancestors(statement) if isinstance(a, _ROUND)), None)
    first = None if loop is None else _first_value(tree, loop, state)
    if loop is None or first is None or not _is_apart(program, loop, statement, state):
        return None
    draft = Draft(tree)
    piece = draft.piece(first)
    draft.remove(first)
    return draft.before(statements_in(loop.body)[0], [piece]).edits()


def _first_value(tree: Tree, loop: cst.For | cst.While, state: str) -> Statement | None:
    """The last assignment to the state above the loop, in its scope."""
    scope, start = tree.scope_of(loop), tree.start(loop)
    for other in reversed(tree.statements):
        if tree.start(other) < start and tree.scope_of(other) is scope:
            if isinstance(other, cst.Assign) and state in _bound(other):
                return other
    return None


def _bound(statement: Statement) -> list[str]:
    return [name for t in targets(statement) for leaf in unpacked(t) if (name := dotted(leaf))]


def _is_apart(program: Program, loop: cst.For | cst.While, backward: Statement, state: str) -> bool:
    if not isinstance(loop, cst.For):
        return False
    for steps in statements_in(loop.body):
        if isinstance(steps, cst.For) and not any(n is backward for n in walk(steps)):
            if state in effects(steps).writes and not _goes_on(steps.iter, loop):
                return True
    return any(_is_shuffled(program, name) for name in _iterated(loop.iter))


def _goes_on(steps: cst.BaseExpression, loop: cst.For) -> bool:
    """Whether the steps begin where the round's variable says: `range(start, start + k)`."""
    own = {leaf.value for leaf in unpacked(loop.target) if isinstance(leaf, cst.Name)}
    if isinstance(steps, cst.Call) and dotted(steps.func) == "range":
        return any(_computes_with(arg.value, own) for arg in steps.args)
    parts = (n for n in walk(steps) if isinstance(n, cst.Slice))
    bounds = (b for part in parts for b in (part.lower, part.upper) if b is not None)
    return any(_computes_with(bound, own) for bound in bounds)


def _computes_with(node: cst.BaseExpression, names: set[str]) -> bool:
    if isinstance(node, cst.BinaryOperation):
        return _computes_with(node.left, names) or _computes_with(node.right, names)
    return isinstance(node, cst.Name) and node.value in names


def _iterated(node: cst.BaseExpression) -> Iterator[str]:
    """The names that a loop goes over, behind `enumerate` and the like."""
    if isinstance(node, cst.Name):
        yield node.value
    elif isinstance(node, cst.Call) and dotted(node.func) in _PASSED_ON:
        for arg in node.args:
            yield from _iterated(arg.value)


def _is_shuffled(program: Program, name: str) -> bool:
    """Whether the program makes it a loader that shuffles."""
    for _, node in index_of(program).nodes(ast.Assign):
        named = any(isinstance(t, ast.Name) and t.id == name for t in node.targets)
        if named and isinstance(node.value, ast.Call):
            flags = (k.value for k in node.value.keywords if k.arg == "shuffle")
            if any(isinstance(flag, ast.Constant) and flag.value is True for flag in flags):
                return True
    return False
