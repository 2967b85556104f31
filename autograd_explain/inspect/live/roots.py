"""What a failed backward began from: tensors, or edges of the graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch.autograd.graph import GradientEdge

from ...incident import LiveFrame


def roots_of(frames: tuple[LiveFrame, ...]) -> Iterator[torch.Tensor | GradientEdge]:
    """Roots are locals of torch's own frames: `self` in Tensor.backward, `tensors` in
    torch.autograd.backward, `outputs` in torch.autograd.grad (torch/autograd/__init__.py)."""
    for live in reversed(frames):
        where = live.filename.replace("\\", "/")
        values: Mapping[str, Any] = live.frame.f_locals
        if where.endswith("torch/autograd/__init__.py"):
            found = values.get("tensors", values.get("outputs"))
        elif where.endswith("torch/_tensor.py") and live.function == "backward":
            found = values.get("self")
        else:
            continue
        if isinstance(found, (torch.Tensor, GradientEdge)):
            found = (found,)
        if found is not None:
            yield from (r for r in found if isinstance(r, (torch.Tensor, GradientEdge)))
            return
