"""What torch calls under a lock of its own: whoever asks for a history then waits for ever."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
import torch

from autograd_explain.program import Program
from autograd_explain.record import watch
from autograd_explain.verification.differences import Slopes
from autograd_explain.verification.lenient import Lenient
from autograd_explain.verification.tracked import UntrackedWrites


class Doubled(torch.autograd.Function):
    """Writes its argument; a view gets its new `grad_fn`, and its hooks, within the call."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        return grad * 2


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "watching",
    [
        lambda: UntrackedWrites(track=True),
        lambda: Lenient({}, retain=True).watch(),
        lambda: Slopes().watch(),
        lambda: watch(Program(), 1, None),
    ],
    ids=["untracked writes", "lenient", "slopes", "recorder"],
)
def test_a_view_written_by_a_custom_function(
    watching: Callable[[], AbstractContextManager[Any]],
) -> None:
    x = torch.ones(4, 1, requires_grad=True)
    with watching():
        Doubled.apply((x * 3).squeeze(-1)).sum().backward()
    assert x.grad is not None and x.grad.flatten().tolist() == [6.0] * 4
