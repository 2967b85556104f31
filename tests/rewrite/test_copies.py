"""`torch.tensor(x)` of a tensor."""

from __future__ import annotations

import pytest
from rewriting import rewritten

from autograd_explain.knowledge.tensor_from_tensor.copies import tensor_copy

CASES = [
    ("y = torch.tensor(x)", "y = x.detach().clone()"),
    ("y = torch.tensor(data=x)", "y = x.detach().clone()"),
    ("y = torch.tensor(a + b)", "y = (a + b).detach().clone()"),
    ("y = torch.tensor(x, requires_grad=True)", "y = x.detach().clone().requires_grad_()"),
    ("y = torch.tensor(x, requires_grad=False)", "y = x.detach().clone()"),
    ("y = torch.tensor(x, requires_grad=f)", "y = x.detach().clone().requires_grad_(f)"),
    ("y = torch.tensor(x, dtype=torch.half)", "y = x.detach().clone().to(torch.half)"),
    (
        "y = torch.tensor(x, dtype=d, device=dev, requires_grad=True)",
        "y = x.detach().clone().to(dev, d).requires_grad_()",
    ),
    ("y = z.new_tensor(x)", "y = x.detach().clone().to(z)"),
    ("y = torch.tensor(x, pin_memory=True)", None),
    ("y = torch.tensor([x, z])", None),
    ("y = torch.zeros(3)", None),
]


@pytest.mark.parametrize(("before", "after"), CASES)
def test_forms(before: str, after: str | None) -> None:
    assert rewritten(tensor_copy, before, before) == after


def test_with_the_graph() -> None:
    assert rewritten(tensor_copy, "y = torch.tensor(x)", "y", keep_graph=True) == "y = x.clone()"


def test_the_expression_chooses() -> None:
    code = "f(torch.tensor(a), torch.tensor(b))"
    assert rewritten(tensor_copy, code, "f", "b") == "f(torch.tensor(a), b.detach().clone())"
    assert rewritten(tensor_copy, code, "f") is None
