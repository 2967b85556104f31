"""What a backward is given: a scalar, a graph that stays differentiable, safe numbers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import libcst as cst

from ...model import Edits
from ..engine.cst_tools import (
    called_name,
    called_on,
    dotted,
    expression,
    head,
    method_name,
)
from ..transforms.finite_mask import finite_fill, rows_left
from ..transforms.uncut import apply_patches, keyword_added
from .site import Change, Site

_ZERO_SLOPE = frozenset("sqrt log log2 log10 rsqrt norm".split())


def reduced(site: Site) -> Iterator[Change]:
    """`losses.backward()` -> `losses.mean().backward()`."""
    for call in site.calls:
        value = called_on(call, "backward") if not call.args else None
        if value is not None:
            for how in ("mean()", "sum()"):
                yield site.change("reduce", value, partial(site.called_on, how, value), how)


def differentiable(site: Site) -> Iterator[Change]:
    """`torch.autograd.grad(y, x)` -> the same with `create_graph=True`, or `allow_unused=True`,
    where what takes no part gives None, or zeros."""
    for call in site.calls:
        name, full = called_name(call), site.imports.full(dotted(call.func))
        if name not in ("backward", "grad") and full != "torch.autograd.grad":
            continue
        options: list[tuple[str, ...]] = [("create_graph",)]
        if name != "backward":
            options += [("allow_unused",), ("allow_unused", "materialize_grads")]
        for flags in options:
            make = partial(_with_flags, site, call, flags)
            group = f"{flags[-1]} of backward" if name == "backward" else flags[-1]
            yield site.change(flags[0], call, make, group)


def away_from_zero(site: Site) -> Iterator[Change]:
    """`torch.sqrt(x)` -> `torch.sqrt(x + 1e-8)`, `x ** 0.5` likewise, where the slope at zero is
    infinite."""
    for node in head(site.statement):
        if isinstance(node, cst.BinaryOperation) and _is_root(node):
            make = partial(_moved_off, site, node.left)
            yield site.change("away_from_zero", node.left, make, group="power")
    for call in site.calls:
        name, full = method_name(call), site.imports.full(dotted(call.func))
        inner = call.args[0].value if full and call.args else None
        inner = called_on(call) if not full else inner
        if name in _ZERO_SLOPE and inner is not None:
            make = partial(_moved_off, site, inner)
            yield site.change("away_from_zero", inner, make, group=name)


def masked_finitely(site: Site) -> Iterator[Change]:
    """`s.masked_fill(m, float("-inf"))` -> `s.masked_fill(m, -1e9)`; a padding mask that leaves a
    row of every sequence."""
    for name, how in (("finite_fill", finite_fill), ("rows_left", rows_left)) if site.calls else ():
        yield site.change(name, site.statement, partial(how, site.program, site.place))


def _is_root(node: cst.BinaryOperation) -> bool:
    """Whether it is a power below one."""
    power = node.right
    if not isinstance(node.operator, cst.Power) or not isinstance(power, cst.Float):
        return False
    return power.evaluated_value < 1


def _with_flags(site: Site, call: cst.Call, flags: tuple[str, ...]) -> Edits | None:
    place = site.tree.place(call)
    # Of two texts put in at one point the last comes first.
    groups = [keyword_added(site.program, place, flag, "True") for flag in reversed(flags)]
    return apply_patches(patch for group in groups for patch in group)


def _moved_off(site: Site, node: cst.BaseExpression) -> Edits | None:
    return site.replaced(node, expression("{x} + 1e-8", x=node))
