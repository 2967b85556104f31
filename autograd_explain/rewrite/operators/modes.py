"""Statements put under no_grad and taken out of it."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..engine.cst_tools import calls_in, dotted, method_name
from ..engine.draft import Draft
from ..engine.tree import Statement, statements_in
from ..transforms.grad_mode import (
    LEARNS,
    last_update,
    out_of_block,
    remove_grad_switch,
    turns_off,
    under_no_grad,
)
from .site import Change, Site

_LONGEST_RUN = 4
_DECLARES = (cst.Import, cst.ImportFrom, cst.FunctionDef, cst.ClassDef, cst.Return, cst.Pass)


def without_graph(site: Site) -> Iterator[Change]:
    """A statement, or the updates that follow each other from there on, under no_grad."""
    own, place = site.statement, site.place
    if isinstance(own, _DECLARES):
        return
    last = last_update(site.program, place)
    ends = [*([last] if last != place else []), place, *map(site.tree.place, _runs(site))]
    for end in ends:
        yield site.change("no_grad", own, under_no_grad, site.program, place, end)


def _runs(site: Site) -> Iterator[Statement]:
    """The ends of the runs that begin here and only prepare: targets, a draft, statistics."""
    inside, at = site.tree.siblings(site.statement)
    for count, statement in enumerate(inside[at : at + _LONGEST_RUN]):
        plain = isinstance(statement, (cst.Assign, cst.Expr))
        if not plain or not LEARNS.isdisjoint(map(method_name, calls_in(statement))):
            return
        if count:
            yield statement


def with_graph(site: Site) -> Iterator[Change]:
    """What keeps gradients off gone: a block, a decorator, a switch; or one statement out of it."""
    statement = site.statement
    nodes: list[cst.BaseExpression] = []
    if isinstance(statement, cst.With):
        nodes = [i.item for i in statement.items if turns_off(site.imports, i.item)]
    elif isinstance(statement, cst.FunctionDef):
        nodes = [d.decorator for d in statement.decorators if turns_off(site.imports, d.decorator)]
    else:
        names = ((c, site.imports.full(dotted(c.func))) for c in site.calls)
        nodes = [call for call, name in names if name.endswith("set_grad_enabled")]
    if not nodes:
        yield from _without_condition(site)
        return
    yield site.change("with_graph", nodes[0], site.made(remove_grad_switch))
    if isinstance(statement, cst.With):
        for inner in statements_in(statement.body):
            out = site.made(out_of_block, [site.tree.place(inner)])
            yield site.change("with_graph", inner, out)


def _without_condition(site: Site) -> Iterator[Change]:
    """`with torch.set_grad_enabled(self.training):` taken away around its body."""
    block = site.statement
    if not isinstance(block, cst.With) or len(block.items) != 1:
        return
    item = block.items[0].item
    full = site.imports.full(dotted(item.func)) if isinstance(item, cst.Call) else ""
    if full == "torch.set_grad_enabled":
        yield site.change("with_graph", item, lambda: Draft(site.tree).opened(block).edits())
