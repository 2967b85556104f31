"""Checkpoints of the other kind, that autograd records."""

import ast
from collections.abc import Iterable

from ...model import Edits, Place
from ...program import Program, called_name
from .spot import Spot
from .uncut import Patch, apply_all


def non_reentrant(program: Program, places: Iterable[Place]) -> Edits | None:
    """`use_reentrant=False` at each of these places: a checkpoint, the `True` of such an option,
    or a library's switch."""
    return apply_all(_turned_off(Spot(program, p)) for p in places)


def _turned_off(spot: Spot) -> list[Patch]:
    if isinstance(spot.node, ast.Constant):
        return spot.with_code("False")
    method = spot.call is not None and isinstance(spot.call.func, ast.Attribute)
    if method and called_name(spot.call).endswith("_enable"):
        return spot.with_argument("gradient_checkpointing_kwargs", '{"use_reentrant": False}')
    return spot.with_argument("use_reentrant", "False")
