"""Shapes, also of tensors that have none."""

from __future__ import annotations

import pytest
import torch
from notebook import captured, shell_with_extension

from autograd_explain.inspect.live.shapes import shape_of, shown_shape


def nested(layout: torch.layout = torch.strided) -> torch.Tensor:
    return torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], layout=layout)


def test_a_shape_is_numbers() -> None:
    assert shape_of(torch.ones(2, 0)) == (2, 0) and shape_of(torch.ones(())) == ()
    assert shown_shape(torch.ones(2, 0)) == "[2, 0]"


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
def test_a_nested_tensor_has_none(layout: torch.layout) -> None:
    assert shape_of(nested(layout)) is None
    assert shown_shape(nested(layout)) == "[2, *, 3]"


def test_errors_at_nested_tensors_are_explained() -> None:
    with shell_with_extension() as shell, captured() as out:
        shell.run_cell(
            "import torch\nrows = [torch.ones(2), torch.ones(3)]\n"
            "a = torch.nested.nested_tensor(rows, requires_grad=True)"
        )
        shell.run_cell("b = a * 2\nb.backward()")
        shell.run_cell("%autograd_inspect a")
    assert "`b` has shape `[2, *]`" in out.getvalue()
    assert "internal error" not in out.getvalue()
