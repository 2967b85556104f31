"""Values that differ although the gradients agree: by rounding, or because an edit changed them."""

from __future__ import annotations

import pytest
import torch

from autograd_explain.verification.compare import compare
from autograd_explain.verification.gradient_log import GradientLog
from autograd_explain.verification.objects import walk
from autograd_explain.verification.snapshot import Snapshot, TensorState


class Steps(GradientLog):
    """What optimizers used last, by the tensor."""

    def __init__(self, used: dict[int, torch.Tensor]) -> None:
        super().__init__(())
        self._used = used

    def stepped(self, tensor: torch.Tensor) -> torch.Tensor | None:
        return self._used.get(id(tensor))


def differing(bias_reference: float, bias_now: float) -> list[str]:
    """What differs where a bias was moved by Adam in both runs, each time by such a gradient, and
    a weight has a gradient of about one."""
    values = {"weight": torch.ones(3), "bias": torch.zeros(3)}
    now = {"weight": torch.ones(3), "bias": torch.full((3,), 0.1)}
    ones = torch.ones(3)
    used = {id(now["weight"]): ones, id(now["bias"]): torch.full((3,), bias_now)}
    before = {"weight": ones, "bias": torch.full((3,), bias_reference)}
    states = tuple(
        TensorState((path,), True, None, None, before[name], values[name])
        for path, _ in walk(values)
        if (name := str(path[0].key)) in values
    )
    return compare(Snapshot(states), now, Steps(used)).differing_values


def test_steps_by_rounding_are_no_difference() -> None:
    assert differing(3e-9, -2e-9) == []


@pytest.mark.parametrize(("before", "now"), [(0.0, 0.0), (1e-3, 1e-3)])
def test_what_a_step_by_a_gradient_or_none_leaves_is_compared(before: float, now: float) -> None:
    assert differing(before, now) == ["bias"]
