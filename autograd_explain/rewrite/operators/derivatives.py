"""Derivatives: with respect to which tensor they are taken, and where they are read."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import libcst as cst

from ...model import Edits
from ..engine.cst_tools import head, literal_bool, make, single_targets
from ..engine.cst_tools import keyword as keyword_of
from ..engine.draft import Draft
from ..engine.tree import Statement
from ..transforms.derivative_taken import derivative_taken
from ..transforms.keep_gradient import gradient_of_whole
from .site import Change, Site

_TAKES_APART = {"split": "cat", "chunk": "cat", "unbind": "stack"}


def put_together(site: Site) -> Iterator[Change]:
    """`a, b = x[:, :1], x[:, 1:]` -> the same, then `x = torch.cat([a, b], dim=1)`: what is
    computed of x depends on its parts."""
    names = [n for n in single_targets(site.statement) if isinstance(n, cst.Name)]
    value = getattr(site.statement, "value", None)
    whole = None
    if isinstance(value, cst.Tuple):
        whole = _whole(site, [element.value for element in value.elements])
    elif isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute):
        how = _TAKES_APART.get(value.func.attr.value)
        dim = keyword_of(value, "dim")
        if how and isinstance(value.func.value, cst.Name):
            whole = value.func.value, how, "0" if dim is None else site.tree.code(dim.value)
    if whole is None:
        names, parts = _parts_above(site)
        whole = _whole(site, list(parts)) if parts else None
    if whole is not None and len(names) > 1:
        yield site.change("put_together", whole[0], partial(_together, site, names, *whole))


def _parts_above(site: Site) -> tuple[list[cst.Name], list[cst.Subscript]]:
    """The names that follow each other down to this statement, each given a part of a tensor."""
    inside, end = site.tree.siblings(site.statement)
    found: list[tuple[cst.Name, cst.Subscript]] = []
    for statement in reversed(inside[: end + 1]):
        pair = _named_part(statement)
        if pair is None:
            break
        found.insert(0, pair)
    return [name for name, _ in found], [part for _, part in found]


def _named_part(statement: Statement) -> tuple[cst.Name, cst.Subscript] | None:
    """`t` and `p[:, :1]` of `t = p[:, :1].clone()`."""
    if not isinstance(statement, cst.Assign) or len(statement.targets) != 1:
        return None
    name, value = statement.targets[0].target, statement.value
    while isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute):
        value = value.func.value
    if isinstance(name, cst.Name) and isinstance(value, cst.Subscript):
        return name, value
    return None


def _whole(
    site: Site, parts: list[cst.BaseExpression]
) -> tuple[cst.BaseExpression, str, str] | None:
    """The tensor of which all these are parts, how they are put together and in which dimension."""
    found = [part for part in parts if isinstance(part, cst.Subscript)]
    owners = {site.tree.code(part.value) for part in found}
    if len(found) != len(parts) or len(owners) != 1 or not isinstance(found[0].value, cst.Name):
        return None
    last = found[0].slice[-1].slice
    ellipsis = isinstance(found[0].slice[0].slice, cst.Index) and len(found[0].slice) > 1
    dim = "-1" if ellipsis else str(len(found[0].slice) - 1)
    return found[0].value, "cat" if isinstance(last, cst.Slice) else "stack", dim


def _together(
    site: Site, names: list[cst.Name], whole: cst.BaseExpression, how: str, dim: str
) -> Edits | None:
    function = site.imports.local(f"torch.{how}")
    if function is None:
        return None
    parts = ", ".join(name.value for name in names)
    joined = make(f"{{x}} = {function}([{parts}], dim={dim})", x=whole)
    return Draft(site.tree).after(site.statement, [joined]).edits()


def derivative_itself(site: Site) -> Iterator[Change]:
    """`loss.backward(create_graph=True)`, then `w.grad` -> the gradients that
    `torch.autograd.grad` gives: `.grad` adds up what every backward leaves there."""
    own = site.statement
    call = own.value if isinstance(own, cst.Expr) else None
    flag = keyword_of(call, "create_graph") if isinstance(call, cst.Call) else None
    if flag is not None and literal_bool(flag.value):
        given = partial(derivative_taken, site.program, site.place)
        yield site.change("derivative_itself", own, given)


def part_of_gradient(site: Site) -> Iterator[Change]:
    """`x[k].grad` -> `x.grad[k]`: the gradient is in the tensor itself."""
    nodes = (n for n in head(site.statement) if isinstance(n, cst.Attribute))
    if any(node.attr.value == "grad" for node in nodes):
        whole = partial(gradient_of_whole, site.program, site.place)
        yield site.change("gradient_of_whole", site.statement, whole, group="grad")
