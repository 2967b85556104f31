"""Casts and arithmetic put before the leaf is made."""

from __future__ import annotations

import pytest
from rewriting import cell, rewritten

from autograd_explain.rewrite.transforms.casts import dtype_in_constructor, requires_grad_last

T = "x = torch.tensor(v, requires_grad=True)"
DTYPES = [
    (f"{T}.float()", "x = torch.tensor(v, dtype=torch.float32, requires_grad=True)"),
    (f"{T}.double()", "x = torch.tensor(v, dtype=torch.float64, requires_grad=True)"),
    (f"{T}.to(torch.float16)", "x = torch.tensor(v, dtype=torch.float16, requires_grad=True)"),
    (f"{T}.to(device)", "x = torch.tensor(v, device=device, requires_grad=True)"),
    (f"{T}.to(self.device)", "x = torch.tensor(v, device=self.device, requires_grad=True)"),
    (f"{T}.to('cuda')", "x = torch.tensor(v, device='cuda', requires_grad=True)"),
    (f"{T}.cuda()", 'x = torch.tensor(v, device="cuda", requires_grad=True)'),
    (f"{T}.cuda(1)", "x = torch.tensor(v, device=1, requires_grad=True)"),
    (f"{T}.type(torch.double)", "x = torch.tensor(v, dtype=torch.double, requires_grad=True)"),
    (
        f"{T}.float().to(device)",
        "x = torch.tensor(v, dtype=torch.float32, device=device, requires_grad=True)",
    ),
    (
        "x = torch.tensor(v, dtype=torch.float64, requires_grad=True).float()",
        "x = torch.tensor(v, dtype=torch.float32, requires_grad=True)",
    ),
    (
        "x = torch.zeros(3, requires_grad=True).half()  # h",
        "x = torch.zeros(3, dtype=torch.float16, requires_grad=True)  # h",
    ),
    # the argument may be a dtype or a device: the cast first works for both
    (f"{T}.to(what)", "x = torch.tensor(v).to(what).requires_grad_()"),
    # other random numbers would come out
    (
        "x = torch.randn(3, requires_grad=True).double()",
        "x = torch.randn(3).double().requires_grad_()",
    ),
    ("w = nn.Parameter(torch.randn(3)).cuda()", "w = nn.Parameter(torch.randn(3).cuda())"),
    ("x = torch.tensor(v).float()", None),
    ("x = torch.tensor(v, requires_grad=flag).float()", None),
    ("x = torch.tensor(v, requires_grad=True).sum()", None),
]


@pytest.mark.parametrize(("before", "after"), DTYPES)
def test_dtype_in_constructor(before: str, after: str | None) -> None:
    assert rewritten(dtype_in_constructor, before, before) == after


TWO = [
    (
        """
        for k, v in table.items():
            leaf = torch.tensor(v, requires_grad=True)
            unknowns[k] = leaf.float()
        """,
        """
        for k, v in table.items():
            leaf = torch.tensor(v, dtype=torch.float32, requires_grad=True)
            unknowns[k] = leaf
        """,
    ),
    (
        """
        x = torch.tensor(v, requires_grad=True)
        x = x.float()
        y = x * 2
        """,
        """
        x = torch.tensor(v, dtype=torch.float32, requires_grad=True)
        y = x * 2
        """,
    ),
    (
        """
        x = torch.rand(3, requires_grad=True)
        x = x.double()
        """,
        """
        x = torch.rand(3)
        x = x.double().requires_grad_()
        """,
    ),
    (
        """
        w = nn.Parameter(torch.rand(3))
        self.w = w.float()
        """,
        """
        w = torch.rand(3)
        self.w = nn.Parameter(w.float())
        """,
    ),
]


@pytest.mark.parametrize(("before", "after"), TWO)
def test_two_statements(before: str, after: str) -> None:
    needle = next(n for n in (".float()", ".double()") if n in before)
    assert rewritten(dtype_in_constructor, cell(before), needle) == cell(after)


@pytest.mark.parametrize(
    "code",
    [
        "leaf = torch.tensor(v, requires_grad=True)\nf(leaf)\ny = leaf.float()\n",
        "leaf = torch.tensor(v, requires_grad=True)\ny = leaf.float()\nprint(leaf.grad)\n",
        "leaf = other(v)\ny = leaf.float()\n",
        "y = leaf.float()\n",
    ],
)
def test_two_statements_decline(code: str) -> None:
    assert rewritten(dtype_in_constructor, code, ".float()") is None


LAST = [
    ("w = torch.randn(n, requires_grad=True) * 0.1", "w = (torch.randn(n) * 0.1).requires_grad_()"),
    (
        "w = 0.1 * torch.randn(n, requires_grad=True).view(3)",
        "w = (0.1 * torch.randn(n).view(3)).requires_grad_()",
    ),
    ("w = torch.rand(2, 3, requires_grad=True).t()", "w = torch.rand(2, 3).t().requires_grad_()"),
    ("w = nn.Parameter(torch.randn(n)) * s", "w = nn.Parameter(torch.randn(n) * s)"),
    ("w = -torch.ones(n, requires_grad=True)", "w = (-torch.ones(n)).requires_grad_()"),
    ("w = torch.ones(n, requires_grad=True)", None),
    ("w = f(torch.ones(n, requires_grad=True))", None),
    ("w = torch.ones(n, requires_grad=True) * torch.ones(n, requires_grad=True)", None),
]


@pytest.mark.parametrize(("before", "after"), LAST)
def test_requires_grad_last(before: str, after: str | None) -> None:
    assert rewritten(requires_grad_last, before, before) == after
