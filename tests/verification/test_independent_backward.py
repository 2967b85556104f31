"""What an output is said to follow, when it is asked which gradients a `backward` owes."""

from __future__ import annotations

from typing import Any

import torch

from autograd_explain.verification.differences import direction
from autograd_explain.verification.independent_backward import _Call, _follows


class Weighted(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return (x * weight).sum()


def test_a_step_that_cancels_out_is_not_the_only_one() -> None:
    """A mean may stay what it is where its elements move to both sides."""
    x = torch.ones(2, dtype=torch.float64)
    along, across = direction(x, 0)
    for weight, follows in ((torch.stack([across, -along]), True), (torch.zeros_like(x), False)):
        outputs = (Weighted.apply(x, weight),)
        assert _follows(_Call(Weighted, (x, weight), outputs, (x, weight)), 0) is follows
