"""What an object computes at its first call and keeps, computed before a loop without a graph."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ...model import Edits, Place
from ...program import Program
from ..analysis.effects import bound_in, effects
from ..engine.cst_tools import bare, block, called_name, method_name, walk
from ..engine.draft import Draft
from ..engine.imports import Imports
from ..engine.tree import Tree, tree_at
from .grad_mode import LEARNS


def filled_first(
    program: Program, place: Place | None, failed: Place | None = None
) -> tuple[str, Edits] | None:
    """`with torch.no_grad(): f(x)` before the loop that calls `f(x)`, and that call.

    The call at `place`; where that stands in a function, the one of the function in the loop around
    `failed`.  None where it reads what the rounds give new values.
    """
    for tree, call in _calls(program, place, failed):
        loop = tree.loops(call)[0]
        guard = Imports.of(program, tree.source).local("torch.no_grad")
        fixed = effects(call).reads.isdisjoint(bound_in(loop))
        if guard is not None and fixed and method_name(call) not in LEARNS:
            before = block(f"with {guard}():\n    {{c}}", c=bare(call))
            edits = Draft(tree).before(loop, [before]).edits()
            return None if edits is None else (tree.code(call), edits)
    return None


def _calls(
    program: Program, place: Place | None, failed: Place | None
) -> Iterator[tuple[Tree, cst.Call]]:
    tree = tree_at(program, place)
    for call in tree.at(place):
        if isinstance(call, cst.Call) and tree.loops(call):
            yield tree, call
        scope = tree.scope_of(call)
        if isinstance(scope, cst.FunctionDef) and failed is not None:
            yield from _of_function(tree_at(program, failed), failed, scope.name.value)


def _of_function(tree: Tree, failed: Place, name: str) -> Iterator[tuple[Tree, cst.Call]]:
    """The calls of a function in the loops around a place."""
    statement = tree.statement(failed)
    for loop in [] if statement is None else tree.loops(statement):
        for node in walk(loop.body):
            if isinstance(node, cst.Call) and called_name(node) == name:
                yield tree, node
