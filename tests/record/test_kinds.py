"""Every function that torch may hand to a function mode has a kind, and none stops the program."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch.overrides import get_testing_overrides

from autograd_explain.program import Program
from autograd_explain.record import watch
from autograd_explain.record.kinds import Kind, Operations, classify


def test_every_overridable_function_is_classified() -> None:
    assert all(isinstance(classify(f), Kind) for f in get_testing_overrides())


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (torch.Tensor.__pow__, Kind.CALL),
        (torch.Tensor.__rsub__, Kind.CALL),
        (torch.Tensor.view, Kind.VIEW),
        (torch.Tensor.add_, Kind.WRITE),
        (torch.Tensor.__setitem__, Kind.WRITE),
        (torch.Tensor.numpy, Kind.NUMPY),
        (torch.Tensor.data.__get__, Kind.GET_DATA),
        (torch.Tensor.backward, Kind.BACKWARD),
        (torch.tensor, Kind.COPY),
        (torch.zeros, Kind.LEAF),
        (F.relu, Kind.INPLACE),
        (F.batch_norm, Kind.BATCH_NORM),
        (torch.Tensor.size, Kind.PASS),
    ],
)
def test_kinds(function: object, kind: Kind) -> None:
    assert classify(function) is kind  # type: ignore[arg-type]


def test_a_function_that_cannot_be_read_is_looked_at_whole() -> None:
    class Odd:
        __name__ = "odd"

        def __call__(self) -> None: ...

        def __eq__(self, other: object) -> bool:
            raise ValueError("not comparable")

        def __hash__(self) -> int:
            return 1

    assert Operations().learn(Odd())[0] == Kind.COMPOSITE


@pytest.mark.parametrize("expression", ["x**2", "2**x", "1 - x", "3 / x", "x // 2", "x % 2"])
def test_operators_of_tensors_run_as_without_us(expression: str) -> None:
    x = torch.rand(3, requires_grad=True)
    with watch(Program(), 1) as recording:
        watched = eval(expression, {"x": x})
    assert torch.equal(watched, eval(expression, {"x": x}))
    assert recording.limits == ()
