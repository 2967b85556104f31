"""`use_reentrant=False`, in every checkpoint that would go on unrecorded."""

import ast

from autograd_explain.model import What
from autograd_explain.program import called_name
from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.transforms.spot import Spot
from autograd_explain.rewrite.transforms.uncut import Patch, apply_all


def _non_reentrant(site: Site[object]) -> Edits | None:
    return apply_all(_turned_off(site.at(p)) for p in site.finding.places(What.CAUSE))


def _turned_off(spot: Spot) -> list[Patch]:
    """At a checkpoint, at the `True` of such an option, or at a library's switch."""
    if isinstance(spot.node, ast.Constant):
        return spot.with_code("False")
    method = spot.call is not None and isinstance(spot.call.func, ast.Attribute)
    if method and called_name(spot.call).endswith("_enable"):
        return spot.with_argument("gradient_checkpointing_kwargs", '{"use_reentrant": False}')
    return spot.with_argument("use_reentrant", "False")


propose: Propose[object] = by_table(Fix("non_reentrant", _non_reentrant))
