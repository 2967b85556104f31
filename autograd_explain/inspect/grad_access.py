"""The tensor whose `.grad` was read although it is no leaf."""

from __future__ import annotations

import torch

from .non_leaf import NonLeaf, analyse
from .origin import attribute_read, walker_of
from .scene import Scene


def non_leaf_read(scene: Scene) -> NonLeaf | None:
    """What the warning was about; None where the tensor cannot be had any more."""
    shown = attribute_read(scene, "grad")
    tensor = scene.incident.evidence.get("object")
    if not isinstance(tensor, torch.Tensor) and shown is not None:
        tensor = walker_of(scene).value(shown)
    if not isinstance(tensor, torch.Tensor) or tensor.is_leaf or tensor.retains_grad:
        return None
    return analyse(scene, tensor, shown)
