"""Copies: of what is read, of what is given a name, of what is about to be written."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..analysis.effects import can_rebind
from ..engine.cst_tools import called_on, method_name, repeatable, stores
from ..engine.draft import Draft
from .site import Change, Site


def clone_operand(site: Site) -> Iterator[Change]:
    """`f(x)` -> `f(x.clone())`, wherever the statement reads x; not `x.clone().add_(y)`, which
    writes into what nobody has."""
    written = _only_written(site)
    for code, found in site.operands.items():
        nodes = [n for n in found if n is not written]
        if len(nodes) > 1:
            yield site.change("clone", code, site.called_on, "clone()", *nodes)
        for node in nodes:
            yield site.change("clone", code, site.called_on, "clone()", node, group=code)


def _only_written(site: Site) -> cst.BaseExpression | None:
    """`x` of a line `x.add_(y)`, which goes on with nothing that the call gives."""
    call = site.statement.value if isinstance(site.statement, cst.Expr) else None
    return called_on(call) if call is not None and method_name(call).endswith("_") else None


def clone_result(site: Site) -> Iterator[Change]:
    """`y = f(x)` -> `y = f(x).clone()`."""
    value = site.value
    if isinstance(value, (cst.BinaryOperation, cst.UnaryOperation, cst.Comparison)):
        yield site.change("clone", value, site.called_on, "clone()", value)


def clone_before(site: Site) -> Iterator[Change]:
    """`x = x.clone()` on a line before any statement that hands x on or writes to it, where that
    reaches who reads x later."""
    stored = (n.value for n in stores(site.statement) if isinstance(n, cst.Subscript))
    written = _only_written(site)
    for base in (*(nodes[0] for nodes in site.operands.values()), *stored):
        if not isinstance(base, (cst.Name, cst.Attribute)) or not repeatable(base):
            continue
        if base is not written or can_rebind(site.tree, site.statement, base):
            copied = "{x} = {x}.clone()"
            yield site.change("clone_first", base, site.line, Draft.before, copied, x=base)
