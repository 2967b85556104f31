"""Statements taken out of a block in which gradients are off, and blocks that end where they
should."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

import libcst as cst

from ...model import Edits, Place
from ...program import Program
from ..analysis.effects import bound_in
from ..engine.cst_tools import dotted, make, positional_parameters
from ..engine.draft import Draft
from ..engine.imports import imports_at
from ..engine.tree import Statement, Tree, position, statement_at, statements_in
from .grad_mode import decorated, remove_grad_switch, run_between, with_guard
from .move_statement import independent, lifted


def out_of_block(
    program: Program, block: Place | None, needed: Iterable[Place | None]
) -> Edits | None:
    """Take the statements that gradient must pass through out of the block at `block`.

    They go behind the block, or before it, where names allow; where all of the block is needed
    (or it returns) the block itself goes.
    """
    tree, outer = statement_at(program, block)
    if not isinstance(outer, cst.With):
        return None
    inside = statements_in(outer.body)
    wanted = _level(tree, inside, outer, needed)
    rest = [s for s in inside if all(s is not w for w in wanted)]
    if not wanted or not rest or any(isinstance(s, cst.Return) for s in wanted):
        return remove_grad_switch(program, block) if wanted else None
    after = [s for s in rest if position(inside, s) > position(inside, wanted[0])]
    before = [s for s in rest if position(inside, s) < position(inside, wanted[-1])]
    behind = independent(wanted, after)
    if behind or independent(wanted, before):
        return Draft(tree).move(wanted, outer, after=behind).edits()
    return remove_grad_switch(program, block)


def recorded_run(
    program: Program, place: Place, last_place: Place, asking: Iterable[str] = ()
) -> Edits | None:
    """The statements from `place` to `last_place` under `with torch.enable_grad():`; where one of
    them stands deeper, the statement of the other's block that holds it.  The tensors named in
    `asking` are to require grad first, unless these statements make them."""
    tree, first = statement_at(program, place)
    last = tree.statement(last_place)
    guard = imports_at(program, place).local("torch.enable_grad")
    if first is None or last is None or guard is None:
        return None
    around = [n for n in (last, *tree.ancestors(last)) if isinstance(n, Statement)]
    for outer in around:
        block = tree.block_of(outer)
        level = None if block is None else lifted(tree, first, block)
        run = run_between(tree, level, outer)
        if level is not None and run:
            made = set().union(*map(bound_in, run))
            flags = [make(f"{n}.requires_grad_()") for n in asking if n not in made]
            draft = Draft(tree).before(level, flags)
            return draft.wrap(level, outer, partial(with_guard, guard)).edits()
    return None


def mode_of_caller(program: Program, block: Place) -> Edits | None:
    """`with torch.set_grad_enabled(self.training):` in a module's `forward` goes, its body stays.

    None for any other condition: there somebody decides on the mode who knows what it is for.
    """
    tree, outer = statement_at(program, block)
    around = () if outer is None else tree.ancestors(outer)
    function = next((a for a in around if isinstance(a, cst.FunctionDef)), None)
    own = [f"{name}.training" for name in positional_parameters(function)[:1]] if function else []
    if not isinstance(outer, cst.With) or not own:
        return None
    followed = all(_mode(program, block, item.item) == own[0] for item in outer.items)
    return Draft(tree).opened(outer).edits() if followed else None


def _mode(program: Program, place: Place, node: cst.BaseExpression) -> str | None:
    """What switches recording on: `m` of `torch.set_grad_enabled(m)`, of
    `torch.inference_mode(not m)`."""
    if not isinstance(node, cst.Call) or len(node.args) != 1:
        return None
    value, full = node.args[0].value, imports_at(program, place).full(dotted(node.func))
    if full == "torch.inference_mode" and isinstance(value, cst.UnaryOperation):
        return dotted(value.expression) if isinstance(value.operator, cst.Not) else None
    return dotted(value) if full.endswith(".set_grad_enabled") else None


def recorded_again(
    program: Program, off: Place | None, needed: Iterable[Place | None]
) -> Edits | None:
    """The statements out of the block at a place, or the decorator there gone."""
    if isinstance(statement_at(program, off)[1], cst.With):
        return out_of_block(program, off, needed)
    return without_decorator(program, off)


def without_decorator(program: Program, place: Place | None) -> Edits | None:
    """The decorator on the place's line taken away; its span is no statement's."""
    return None if place is None else remove_grad_switch(program, replace(place, span=None))


def decorated_generator(program: Program, block: Place) -> Edits | None:
    """`with torch.no_grad():` around a `yield` -> the decorator, which torch switches off again at
    every yield."""
    tree, outer = statement_at(program, block)
    imports = imports_at(program, block)
    if not isinstance(outer, cst.With) or len(outer.items) != 1:
        return None
    function = next((a for a in tree.ancestors(outer) if isinstance(a, cst.FunctionDef)), None)
    guard = outer.items[0].item
    known = isinstance(guard, cst.Call) and imports.full(dotted(guard.func)) in (
        "torch.no_grad",
        "torch.inference_mode",
    )
    if function is None or not known:
        return None
    draft = Draft(tree).opened(outer)
    return draft.change(function, partial(decorated, cst.Decorator(guard))).edits()


def _level(
    tree: Tree, inside: list[Statement], outer: cst.With, needed: Iterable[Place | None]
) -> list[Statement]:
    """The block's own statements that hold the places, in order."""
    found: list[Statement] = []
    for place in needed:
        statement = tree.statement(place)
        level = None if statement is None else lifted(tree, statement, outer.body)
        if level is not None and all(level is not f for f in found):
            found.append(level)
    return sorted(found, key=partial(position, inside))
