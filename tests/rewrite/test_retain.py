"""`requires_grad_()` where a tensor is made."""

from __future__ import annotations

import pytest
from rewriting import rewritten

from autograd_explain.knowledge.input_without_grad.retain import requires_grad_after

CASES = [
    ("x = load()", "x", "x = load()\nx.requires_grad_()"),
    ("h = f(x)  # act", None, "h = f(x)  # act\nh.requires_grad_()"),
    ("out, h = f(x)", "h", "out, h = f(x)\nh.requires_grad_()"),
    ("self.last = h = f(x)", "self.last", "self.last = h = f(x)\nself.last.requires_grad_()"),
    ("if c: h = f(x)", None, "if c: h = f(x); h.requires_grad_()"),
    ("a = 1; h = f(x); b = 2", "h", "a = 1; h = f(x); h.requires_grad_(); b = 2"),
    ("out, h = f(x)", None, None),
    ("h = f(x)", "g", None),
    ("return_(f(x))", None, None),
]


@pytest.mark.parametrize(("before", "expr", "after"), CASES)
def test_requires_grad_after(before: str, expr: str | None, after: str | None) -> None:
    assert rewritten(requires_grad_after, before, before, expr) == after
