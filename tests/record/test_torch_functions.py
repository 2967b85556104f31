"""Every function that torch may hand to a function mode has a kind, and none stops the program."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch.overrides import get_testing_overrides
from watching import lines, watched

from autograd_explain.program import Program
from autograd_explain.record import watch
from autograd_explain.record.observe.torch_functions import CallKind, FunctionTable, classify


def test_every_overridable_function_is_classified() -> None:
    assert all(isinstance(classify(f), CallKind) for f in get_testing_overrides())


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (torch.Tensor.__pow__, CallKind.CALL),
        (torch.Tensor.__rsub__, CallKind.CALL),
        (torch.Tensor.view, CallKind.VIEW),
        (torch.Tensor.add_, CallKind.WRITE),
        (torch.Tensor.__setitem__, CallKind.WRITE),
        (torch.Tensor.numpy, CallKind.NUMPY),
        (torch.Tensor.data.__get__, CallKind.GET_DATA),
        (torch.Tensor.backward, CallKind.PASS),
        (torch.tensor, CallKind.COPY),
        (torch.zeros, CallKind.LEAF),
        (F.relu, CallKind.INPLACE),
        (F.batch_norm, CallKind.BATCH_NORM),
        (torch.Tensor.size, CallKind.PASS),
    ],
)
def test_kinds(function: object, kind: CallKind) -> None:
    assert classify(function) is kind  # type: ignore[arg-type]


def test_a_function_that_cannot_be_read_is_looked_at_whole() -> None:
    class Odd:
        __name__ = "odd"

        def __call__(self) -> None: ...

        def __eq__(self, other: object) -> bool:
            raise ValueError("not comparable")

        def __hash__(self) -> int:
            return 1

    assert FunctionTable().learn(Odd())[0] == CallKind.COMPOSITE


@pytest.mark.parametrize("expression", ["x**2", "2**x", "1 - x", "3 / x", "x // 2", "x % 2"])
def test_operators_of_tensors_run_as_without_us(expression: str) -> None:
    x = torch.rand(3, requires_grad=True)
    with watch(Program(), 1) as recording:
        watched = eval(expression, {"x": x})
    assert torch.equal(watched, eval(expression, {"x": x}))
    assert recording.limits == ()


def test_operators_that_torch_writes_in_python_are_noted_as_what_they_call() -> None:
    recording, _ = watched("x = torch.ones(2, requires_grad=True)\ny = x ** 2\nz = 1 - x")
    noted = [recording.sites.all[made[2]].operation for made in recording.log.made]
    assert [recording.operations.names[number] for number in noted] == ["pow", "rsub"]
    assert lines(recording, recording.log.made) == [2, 3]
