"""Statements put under no_grad and taken out of it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import libcst as cst

from ..engine.cst_tools import dotted, expression, parenthesised
from ..engine.draft import Draft
from ..engine.proposal import Edits
from ..engine.tree import Statement, statements_in
from ..transforms.grad_mode import (
    last_update,
    remove_grad_switch,
    turns_off,
    under_no_grad,
    with_guard,
)
from ..transforms.leave_no_grad import out_of_block
from .site import Change, Site

_LONGEST_RUN = 4
_LEARNS = frozenset({"backward", "step", "zero_grad"})
_DECLARES = (cst.Import, cst.ImportFrom, cst.FunctionDef, cst.ClassDef, cst.Return, cst.Pass)


def without_graph(site: Site) -> Iterator[Change]:
    """A statement, or the updates that follow each other from there on, under no_grad."""
    code, program, place = site.tree.code(site.statement).strip(), site.program, site.place
    if isinstance(site.statement, _DECLARES):
        return
    last = last_update(program, place)
    if last != place:
        yield Change("no_grad", site, code, lambda: under_no_grad(program, place, last))
    yield Change("no_grad", site, code, lambda: under_no_grad(program, place))
    for end in _runs(site):
        where = site.tree.place(end)
        yield Change("no_grad", site, code, partial(under_no_grad, program, place, where))


def _runs(site: Site) -> Iterator[Statement]:
    """The ends of the runs that begin here and only prepare: targets, a draft, statistics."""
    block = site.tree.block_of(site.statement)
    inside = [] if block is None else statements_in(block)
    at = next((n for n, s in enumerate(inside) if s is site.statement), len(inside))
    for count, statement in enumerate(inside[at : at + _LONGEST_RUN]):
        plain = isinstance(statement, (cst.Assign, cst.Expr))
        if not plain or not _LEARNS.isdisjoint(_methods(site, statement)):
            return
        if count:
            yield statement


def _methods(site: Site, statement: Statement) -> set[str]:
    calls = Site(site.program, site.tree, statement).calls
    return {call.func.attr.value for call in calls if isinstance(call.func, cst.Attribute)}


def function_without_graph(site: Site) -> Iterator[Change]:
    """`@torch.no_grad()` over a function."""
    if isinstance(site.statement, cst.FunctionDef):
        name = site.statement.name.value
        yield Change("no_grad_function", site, name, lambda: _decorated(site))


def block_reaches_further(site: Site) -> Iterator[Change]:
    """The statement behind a `with torch.no_grad():` block goes into it."""
    block = site.statement
    if isinstance(block, cst.With) and any(
        turns_off(site.imports, item.item) for item in block.items
    ):
        yield Change("no_grad_further", site, "torch.no_grad()", lambda: _with_next(site, block))


def with_graph(site: Site) -> Iterator[Change]:
    """What keeps gradients off gone: a block, a decorator, a switch; or one statement out of it."""
    place, program, statement = site.place, site.program, site.statement
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
    code = site.tree.code(nodes[0])
    yield Change("with_graph", site, code, lambda: remove_grad_switch(program, place))
    if isinstance(statement, cst.With):
        for inner in statements_in(statement.body):
            where = site.tree.place(inner)
            yield Change(
                "with_graph", site, site.tree.code(inner).strip(),
                partial(out_of_block, program, place, [where]),
            )  # fmt: skip


def _without_condition(site: Site) -> Iterator[Change]:
    """`with torch.set_grad_enabled(self.training):` taken away around its body, or the other way
    round."""
    block = site.statement
    if not isinstance(block, cst.With) or len(block.items) != 1:
        return
    item = block.items[0].item
    full = site.imports.full(dotted(item.func)) if isinstance(item, cst.Call) else ""
    if full == "torch.set_grad_enabled":
        code = site.tree.code(item)
        yield Change("with_graph", site, code, partial(_body_alone, site, block))
        if isinstance(item, cst.Call) and len(item.args) == 1:
            asked = item.args[0].value
            yield Change("with_graph", site, code, partial(site.replaced, asked, _negated(asked)))


def _negated(asked: cst.BaseExpression) -> cst.BaseExpression:
    if isinstance(asked, cst.UnaryOperation) and isinstance(asked.operator, cst.Not):
        return asked.expression
    return expression("not {x}", x=asked if isinstance(asked, cst.Name) else parenthesised(asked))


def _body_alone(site: Site, block: cst.With) -> Edits | None:
    draft = Draft(site.tree)
    draft.instead(block, [draft.piece(s) for s in statements_in(block.body)])
    return draft.edits()


def no_grad_instead_of_inference(site: Site) -> Iterator[Change]:
    """`torch.inference_mode()` -> `torch.no_grad()`: tensors made there may be used later."""
    nodes = [c.func for c in site.calls]
    if isinstance(site.statement, cst.FunctionDef):
        decorators = [d.decorator for d in site.statement.decorators]
        nodes += [d.func for d in decorators if isinstance(d, cst.Call)]
    guard = site.imports.local("torch.no_grad")
    for node in nodes:
        if guard and site.imports.full(dotted(node)) == "torch.inference_mode":
            yield Change(
                "no_inference_mode", site, site.tree.code(node),
                partial(_renamed, site, node, guard), group="inference_mode",
            )  # fmt: skip


def _renamed(site: Site, node: cst.CSTNode, name: str) -> Edits | None:
    return site.replaced(node, expression(name))


def _decorated(site: Site) -> Edits | None:
    guard = site.imports.local("torch.no_grad")
    function = site.statement
    if guard is None or not isinstance(function, cst.FunctionDef):
        return None
    draft = Draft(site.tree)
    new = cst.Decorator(expression(f"{guard}()"))
    draft.change(function, lambda f: f.with_changes(decorators=[new, *f.decorators]))
    return draft.edits()


def _with_next(site: Site, block: cst.With) -> Edits | None:
    following = _next(site, block)
    if following is None:
        return None
    draft = Draft(site.tree)
    guard = site.tree.code(block.items[0].item).removesuffix("()")
    inner = [Draft(site.tree).piece(s) for s in statements_in(block.body)]
    draft.instead(block, inner)
    draft.wrap(block, following, partial(with_guard, guard))
    return draft.edits()


def _next(site: Site, statement: Statement) -> Statement | None:
    block = site.tree.block_of(statement)
    inside = [] if block is None else statements_in(block)
    at = next((i for i, s in enumerate(inside) if s is statement), len(inside))
    return inside[at + 1] if at + 1 < len(inside) else None
