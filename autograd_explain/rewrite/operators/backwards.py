"""What a backward is given: a scalar, a graph that stays differentiable, finite masks."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ...model import Edits
from ..engine.cst_tools import called_name, called_on, dotted
from ..transforms.call_edits import finite_fill
from ..transforms.uncut import apply_all, keyword_added
from .site import Change, Site


def reduced(site: Site) -> Iterator[Change]:
    """`losses.backward()` -> `losses.mean().backward()`."""
    for call in site.calls:
        value = called_on(call, "backward") if not call.args else None
        if value is not None:
            for how in ("mean()", "sum()"):
                yield site.change("reduce", value, site.called_on, how, value, group=how)


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
            group = f"{flags[-1]} of backward" if name == "backward" else flags[-1]
            yield site.change(flags[0], call, _with_flags, site, call, flags, group=group)


def masked_finitely(site: Site) -> Iterator[Change]:
    """`s.masked_fill(m, float("-inf"))` -> `s.masked_fill(m, -1e9)`."""
    if site.calls:
        yield site.change("finite_fill", site.statement, site.made(finite_fill))


def _with_flags(site: Site, call: cst.Call, flags: tuple[str, ...]) -> Edits | None:
    place = site.tree.place(call)
    # Of two texts put in at one point the last comes first.
    return apply_all(keyword_added(site.program, place, flag, "True") for flag in reversed(flags))
