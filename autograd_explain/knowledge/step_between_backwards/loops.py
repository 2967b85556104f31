"""Loops over a few written-out items: their order changed, or one item taken out behind."""

from __future__ import annotations

import ast

import libcst as cst

from autograd_explain.model import Place
from autograd_explain.program import Program
from autograd_explain.program_index import ProgramIndex, index_of
from autograd_explain.rewrite import Edits
from autograd_explain.rewrite.analysis.effects import used_names
from autograd_explain.rewrite.engine.cst_tools import dotted, same, walk
from autograd_explain.rewrite.engine.draft import Draft
from autograd_explain.rewrite.engine.edits import then
from autograd_explain.rewrite.engine.tree import Tree, statements_in, tree_at
from autograd_explain.rewrite.transforms.move_statement import move_after

_ONCE = frozenset("zip map filter iter enumerate reversed chain itertools.chain".split())


def reorder_items(program: Program, place: Place, item: str, to: int = 0) -> Edits | None:
    """Move the item that holds `item` to position `to` of the list that the loop goes through.

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
        order = list(range(len(literal.elements)))
        order.insert(to if to >= 0 else len(order) + to, order.pop(at))
        draft.replace(literal, _ordered(literal, order))
    return draft.edits()


def split_item(program: Program, place: Place, item: str) -> Edits | None:
    """Take the item that holds `item` out of the loop's list, into a loop of its own behind.

    So that something can be computed between the two.  Only the last item keeps the order.
    """
    tree = tree_at(program, place)
    loop = _loop(tree, place)
    if loop is None or loop.orelse is not None or loop.asynchronous is not None:
        return None
    literals = _literals(loop.iter)
    at = _position(tree, loop, item)
    if at is None or any(len(lit.elements) != at + 1 or at == 0 for lit in literals):
        return None
    if any(isinstance(n, (cst.Break, cst.Return, cst.Yield)) for n in walk(loop.body)):
        return None
    if _counted(loop):
        return None
    draft, iterated = Draft(tree), loop.iter
    for literal in literals:
        draft.replace(literal, _ordered(literal, list(range(at))))
        only = _ordered(literal, [at])
        changed = only if iterated is literal else iterated.deep_replace(literal, only)
        assert isinstance(changed, cst.BaseExpression)
        iterated = changed
    draft.after(loop, [loop.with_changes(iter=iterated, leading_lines=())])
    return draft.edits()


def split_and_move(program: Program, place: Place, item: str, computed: Place) -> Edits | None:
    """`split_item`, and the statement at `computed` moved between the two loops.

    For a loss that must be computed after the steps that the other items take.
    """

    def between(edited: Program, now: Place, loop: Place) -> Edits | None:
        return move_after(edited, now, loop)

    return then(program, split_item(program, place, item), between, computed, place)


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
    lines = [_line(tree, s) for s in body[at:] if isinstance(s, cst.Expr)]
    again = loop.with_changes(body=cst.IndentedBlock(lines), leading_lines=())
    draft.after(loop, [again])
    return draft.edits()


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
    given = (v for c in calls for v in (*c.args, *(k.value for k in c.keywords)))
    return any(_goes_once(index, value) for value in given)


def _goes_once(index: ProgramIndex, value: ast.expr) -> bool:
    if isinstance(value, ast.Name):
        return _used_up(index, value.id)
    called = ast.unparse(value.func) if isinstance(value, ast.Call) else None
    return isinstance(value, ast.GeneratorExp) or called in _ONCE


def _line(tree: Tree, statement: cst.Expr) -> cst.SimpleStatementLine:
    """The statement on a line of its own, with the comments of the line it had to itself."""
    line = tree.parents[statement]
    if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1:
        return line
    alone = statement.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)
    return cst.SimpleStatementLine([alone])


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


def _counted(loop: cst.For) -> bool:
    return isinstance(loop.iter, cst.Call) and dotted(loop.iter.func) == "enumerate"


def _position(tree: Tree, loop: cst.For, item: str) -> int | None:
    """The number of the one item that is or holds the expression."""
    found = {
        number
        for literal in _literals(loop.iter)
        for number, element in enumerate(literal.elements)
        if any(same(tree, n, item) for n in walk(element) if isinstance(n, cst.BaseExpression))
    }
    return found.pop() if len(found) == 1 else None


def _ordered(
    literal: cst.List | cst.Tuple | cst.Dict, order: list[int]
) -> cst.List | cst.Tuple | cst.Dict:
    """The literal with its elements in another order; the commas stay where they are."""
    elements = literal.elements
    new = [
        elements[source].with_changes(comma=elements[position].comma)
        for position, source in enumerate(order)
    ]
    if len(order) < len(elements):
        new[-1] = new[-1].with_changes(comma=elements[-1].comma)
    if isinstance(literal, cst.Tuple) and len(new) == 1:
        new[-1] = new[-1].with_changes(comma=cst.Comma())
    return literal.with_changes(elements=new)
