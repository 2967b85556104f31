"""Modules that are frozen in turn, each thawed again where it is its turn to learn."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

import libcst as cst

from autograd_explain.model import Place
from autograd_explain.program import Program
from autograd_explain.program_index import index_of
from autograd_explain.rewrite import Edits
from autograd_explain.rewrite.analysis.effects import bound_in, used_names
from autograd_explain.rewrite.engine.cst_tools import dotted, make, parse, walk
from autograd_explain.rewrite.engine.draft import Draft
from autograd_explain.rewrite.engine.tree import (
    Statement,
    Tree,
    statement_at,
    statements_in,
    tree_at,
    tree_of,
)
from autograd_explain.rewrite.transforms.move_statement import lifted
from autograd_explain.rewrite.transforms.undone import undone, whole_loop

_Call = tuple[Tree, Statement, str]


def thawed_in_turn(program: Program, freezing: Place) -> Edits | None:
    """`freeze(judge)` and, in another function, `freeze(painter)`: behind each of these calls the
    other one that its function uses gets `.requires_grad_(True)`.

    `freezing` is the line of the helper that sets the flag for the parameters of its argument.
    None where a module is frozen outside functions (for good), or in every turn.
    """
    tree = tree_at(program, freezing)
    inner = tree.statement(freezing)
    helper = None if inner is None else tree.scope_of(inner)
    if not isinstance(helper, cst.FunctionDef) or not _takes_module(helper):
        return None
    calls = list(_calls(program, helper.name.value))
    turns = list(_turns(calls))
    modules = {path for _, _, path in calls}
    if any(_stays_frozen(turns, module) for module in modules):
        return None
    drafts: dict[int, Draft] = {}
    for turn in turns:
        where, call, _ = turn[-1]
        used = {dotted(n) for n in walk(where.scope_of(call))}
        new = [m for m in sorted(modules - _frozen(turn)) if m in used]
        if new:
            draft = drafts.setdefault(id(where), Draft(where))
            draft.after(call, [make("{x}.requires_grad_(True)", x=parse(m)) for m in new])
    edits = [draft.edit() for draft in drafts.values()]
    done = tuple(e for e in edits if e is not None)
    return done if done and len(done) == len(edits) else None


def thawed_before(program: Program, freezing: Place, turn: Place | None) -> Edits | None:
    """What froze a module is taken back in front of the call in which that module learns.

    None where the two lines do not call it the same.
    """
    tree, own = statement_at(program, freezing)
    other, call = statement_at(program, turn)
    if own is None or call is None:
        return None
    thaw = undone(tree, whole_loop(tree, own), "")
    if thaw is None:
        return None
    names = thaw.iter if isinstance(thaw, cst.For) else thaw
    shared = {dotted(n) for n in walk(names)} & {dotted(n) for n in walk(call)}
    return Draft(other).before(call, [thaw]).edits() if shared - {None, "self"} else None


def computed_in_turn(program: Program, made: Place | None, read: Place | None) -> Edits | None:
    """`fake = generator(z)` once more, before what reads it; None where a name that it reads has
    another value there."""
    tree, own = statement_at(program, made)
    other, goal = statement_at(program, read)
    if tree is not other or goal is None or not isinstance(own, cst.Assign):
        return None
    level = lifted(tree, goal, tree.block_of(own))
    order, at = tree.siblings(own)
    passed = [] if level is None else order[at + 1 : order.index(level)]
    bound = {name for statement in passed for name in bound_in(statement)}
    if level is None or bound & used_names(own):
        return None
    return Draft(tree).before(goal, [own]).edits()


def _turns(calls: list[_Call]) -> Iterator[list[_Call]]:
    """The calls in groups: those that follow each other directly freeze for the same turn."""
    turn: list[_Call] = []
    for call in calls:
        if turn and not _follows(turn[-1], call):
            yield turn
            turn = []
        turn.append(call)
    if turn:
        yield turn


def _follows(one: _Call, other: _Call) -> bool:
    block = other[0].block_of(other[1])
    inside = [] if block is None else statements_in(block)
    return any(a is one[1] and b is other[1] for a, b in itertools.pairwise(inside))


def _frozen(turn: list[_Call]) -> set[str]:
    return {path for _, _, path in turn}


def _stays_frozen(turns: list[list[_Call]], module: str) -> bool:
    """Whether a module is frozen for good (outside functions), or learns in nobody's turn."""
    own = [turn for turn in turns if module in _frozen(turn)]
    scopes = [where.scope_of(call) for turn in own for where, call, path in turn if path == module]
    return len(own) == len(turns) or not all(isinstance(s, cst.FunctionDef) for s in scopes)


def _takes_module(helper: cst.FunctionDef) -> bool:
    """Whether it reads `.parameters()` of its first parameter, so that this is a module."""
    first = [p.name.value for p in helper.params.params[:1]]
    return any(dotted(n) in [f"{name}.parameters" for name in first] for n in walk(helper.body))


def _calls(program: Program, name: str) -> Iterator[_Call]:
    """The statements `name(module)` in the order of the program, with what they are given."""
    found = index_of(program).nodes(ast.Expr, naming=(name,))
    for source, alone in itertools.groupby(found, key=lambda pair: pair[0]):
        for node in sorted((node for _, node in alone), key=lambda node: node.lineno):
            if not _is_call_of(node.value, name):
                continue
            tree = tree_of(program, source)
            call = tree.statement(source.place(node.lineno, None, node))
            value = call.value if isinstance(call, cst.Expr) else None
            given = value.args if isinstance(value, cst.Call) else ()
            path = dotted(given[0].value) if len(given) == 1 else None
            if call is not None and path is not None:
                yield tree, call, path


def _is_call_of(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == name
