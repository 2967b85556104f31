"""The live module that a line of the user's called."""

from __future__ import annotations

import torch

from ...isolation.type_checks import is_a
from ..dataflow import ExprAt
from ..dataflow.safe_lookup import MISSING
from ..scene import Scene


def called_module(scene: Scene, spot: ExprAt | None) -> torch.nn.Module | None:
    """What `self.net` is, in a call that has ended too: the one module that a name ends in so."""
    value = MISSING if spot is None else scene.slicer.value(spot)
    if value is MISSING and spot is not None:
        last = spot.text.rpartition(".")[2]
        named = {id(m): m for n, m in scene.names.held_modules if n.endswith(f".{last}")}
        value = named.popitem()[1] if len(named) == 1 else MISSING
    return value if is_a(value, torch.nn.Module) else None
