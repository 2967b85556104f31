"""Loops over a few written-out items: their order changed, or gone through twice."""

from __future__ import annotations

import ast

import libcst as cst

from autograd_explain.arguments import values_given
from autograd_explain.model import Place
from autograd_explain.program import Program
from autograd_explain.program_index import ProgramIndex, index_of
from autograd_explain.rewrite import Edits
from autograd_explain.rewrite.analysis.effects import used_names
from autograd_explain.rewrite.engine.blocks import suite
from autograd_explain.rewrite.engine.cst_tools import dotted, same, walk
from autograd_explain.rewrite.engine.draft import Draft
from autograd_explain.rewrite.engine.tree import Tree, statements_in, tree_at

_ONCE = frozenset("zip map filter iter enumerate reversed chain itertools.chain".split())


def item_first(program: Program, place: Place, item: str) -> Edits | None:
    """The item that holds `item` put first in the list that the loop goes through.

    `for name, loss in [("q1", loss_q1), ("actor", loss_pi)]` with item "loss_pi" puts the actor
    first.  Lists in `zip(…)` change together; dictionaries and `enumerate(…)` are known too.
    """
    tree = tree_at(program, place)
    loop = _loop(tree, place)
    if loop is None:
        return None
    at = _position(tree, loop, item)
    literals = _literals(loop.iter)
    if at is None or any(len(literal.elements) <= at for literal in literals):
        return None
    draft = Draft(tree)
    for literal in literals:
        draft.replace(literal, _with_first(literal, at))
    return draft.edits()


def step_in_own_loop(program: Program, place: Place, backward_place: Place) -> Edits | None:
    """The loop around the step at `place` gone through twice: all backwards first, then the steps.

    `for opt, loss in pairs: opt.zero_grad(); loss.backward(); opt.step()` with nothing computed in
    between.  What stands behind the step in the body goes with it.
    """
    tree = tree_at(program, place)
    loop = _loop(tree, place)
    step = tree.statement(place)
    if loop is None or step is None or tree.block_of(step) is not loop.body:
        return None
    if tree_at(program, backward_place) is not tree or loop is not _loop(tree, backward_place):
        return None
    body = statements_in(loop.body)
    at = next(i for i, s in enumerate(body) if s is step)
    calls = all(isinstance(s, cst.Expr) and isinstance(s.value, cst.Call) for s in body)
    if at == 0 or not calls or loop.orelse is not None or not _again(loop.iter):
        return None
    names, index = used_names(loop.iter), index_of(program)
    if any(_used_up(index, name) for name in names) or _is_given_once(index, tree, loop, names):
        return None
    draft = Draft(tree)
    for statement in body[at:]:
        draft.remove(statement)
    again = loop.with_changes(body=suite([draft.piece(s) for s in body[at:]]), leading_lines=())
    return draft.after(loop, [again]).edits()


def _used_up(index: ProgramIndex, name: str) -> bool:
    """Whether the program makes what a name stands for with `zip(…)` or a generator: it can be
    gone through once only."""
    made = (node.value for _, node in index.assignments(name))
    return any(_goes_once(index, value) for value in made if not isinstance(value, ast.Name))


def _is_given_once(index: ProgramIndex, tree: Tree, loop: cst.For, names: set[str]) -> bool:
    """Whether the loop's function is called with `zip(…)` or a generator for what the loop goes
    through."""
    function = tree.scope_of(loop)
    if not isinstance(function, cst.FunctionDef):
        return False
    if not names & {n.name.value for n in walk(function.params) if isinstance(n, cst.Param)}:
        return False
    calls = (call for _, call in index.calls_of(function.name.value))
    given = (v for c in calls for v in values_given(c))
    return any(_goes_once(index, value) for value in given)


def _goes_once(index: ProgramIndex, value: ast.expr) -> bool:
    if isinstance(value, ast.Name):
        return _used_up(index, value.id)
    called = ast.unparse(value.func) if isinstance(value, ast.Call) else None
    return isinstance(value, ast.GeneratorExp) or called in _ONCE


def _again(iterated: cst.BaseExpression) -> bool:
    """Whether an expression can be gone through twice: names, lists, views of dictionaries."""
    if isinstance(iterated, cst.Call):
        function = iterated.func
        if isinstance(function, cst.Attribute) and not iterated.args:
            known = function.attr.value in {"items", "values", "keys"}
            return known and _again(function.value)
        inner = dotted(function) in {"zip", "enumerate", "reversed", "list", "tuple", "range"}
        return inner and all(_again(a.value) for a in iterated.args)
    if isinstance(iterated, (cst.List, cst.Tuple)):
        return all(_again(e.value) for e in iterated.elements)
    return isinstance(iterated, (cst.Integer, cst.SimpleString)) or dotted(iterated) is not None


def _loop(tree: Tree, place: Place) -> cst.For | None:
    """The loop whose head stands at a place, or that holds the statement there."""
    found = tree.statement(place)
    around: list[cst.CSTNode] = [] if found is None else [found, *tree.ancestors(found)]
    loops = [n for n in around if isinstance(n, (cst.For, cst.FunctionDef))]
    return loops[0] if loops and isinstance(loops[0], cst.For) else None


def _literals(node: cst.BaseExpression) -> list[cst.List | cst.Tuple | cst.Dict]:
    """The written-out lists whose items the loop takes together; [] for anything else."""
    if isinstance(node, (cst.List, cst.Tuple)):
        starred = any(isinstance(e, cst.StarredElement) for e in node.elements)
        return [] if starred else [node]
    if isinstance(node, cst.Dict):
        plain = all(isinstance(e, cst.DictElement) for e in node.elements)
        return [node] if plain else []
    if not isinstance(node, cst.Call):
        return []
    if isinstance(node.func, cst.Attribute) and node.func.attr.value in {"items", "values", "keys"}:
        return _literals(node.func.value)
    if dotted(node.func) in {"zip", "enumerate", "list", "tuple", "tqdm"} and node.args:
        args = node.args if dotted(node.func) == "zip" else node.args[:1]
        parts = [_literals(a.value) for a in args if a.keyword is None]
        return [lit for part in parts for lit in part] if all(parts) else []
    return []


def _position(tree: Tree, loop: cst.For, item: str) -> int | None:
    """The number of the one item that is or holds the expression."""
    found = {
        number
        for literal in _literals(loop.iter)
        for number, element in enumerate(literal.elements)
        if any(same(tree, n, item) for n in walk(element) if isinstance(n, cst.BaseExpression))
    }
    return found.pop() if len(found) == 1 else None


def _with_first(
    literal: cst.List | cst.Tuple | cst.Dict, first: int
) -> cst.List | cst.Tuple | cst.Dict:
    """The literal with one of its elements before the others; the commas stay where they are."""
    elements = literal.elements
    order = [elements[first], *elements[:first], *elements[first + 1 :]]
    new = [e.with_changes(comma=was.comma) for e, was in zip(order, elements, strict=True)]
    return literal.with_changes(elements=new)
