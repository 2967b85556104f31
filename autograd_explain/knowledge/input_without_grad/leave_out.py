"""The frozen parameters left out wherever the program goes through the list in its order."""

from __future__ import annotations

import ast

from autograd_explain.program import called_name
from autograd_explain.rewrite import Edits, Site
from autograd_explain.rewrite.transforms.spot import Spot
from autograd_explain.rewrite.transforms.uncut import Patch, apply_all

from .diagnose import Details

_LEFT = "[p for p in {x} if p.requires_grad]"
_NAMED = "[(n, p) for n, p in {x} if p.requires_grad]"


def left_out(site: Site[Details]) -> Edits | None:
    """`model.parameters()` -> `[p for p in model.parameters() if p.requires_grad]` wherever the
    order counts; where no such call is known, what is given at the site, under its own name where
    that is read again."""
    if site.details.lists:
        return apply_all(_trained(site.at(p)) for p in site.details.lists)
    again = isinstance(site.node, ast.Name) and _is_read_again(site, site.node)
    renamed = site.before(f"{{x}} = {_LEFT}") if again else None
    return renamed or site.replaced(_LEFT)


def _trained(spot: Spot) -> list[Patch]:
    around, call = spot.outer, spot.call
    if call is None or spot.place is None or spot.source is None or spot.place.span is None:
        return []
    named = called_name(call) == "named_parameters"
    if isinstance(around, ast.comprehension):
        parameter = _parameter(around.target, named)
        text = f"{spot.code(call)} if {parameter}.requires_grad"
        return [Patch(spot.source, spot.place.span, text)] if parameter else []
    listed = isinstance(around, ast.Call) and called_name(around) == "list"
    whole = spot.of(around) if isinstance(around, ast.Call) and listed else spot
    return whole.with_code(_NAMED if named else _LEFT, x=spot.code(call))


def _parameter(target: ast.expr, named: bool) -> str:
    """What a comprehension calls the parameter, "" where it does not."""
    if named and isinstance(target, ast.Tuple) and len(target.elts) == 2:
        target = target.elts[1]
    return target.id if isinstance(target, ast.Name) else ""


def _is_read_again(spot: Spot, name: ast.Name) -> bool:
    body = next((n for n in spot.around if isinstance(n, (ast.FunctionDef, ast.Module))), None)
    nodes = ast.walk(body) if body is not None else ()
    behind = (n for n in nodes if isinstance(n, ast.Name) and n.id == name.id and n is not name)
    return any(isinstance(n.ctx, ast.Load) and n.lineno > name.lineno for n in behind)
