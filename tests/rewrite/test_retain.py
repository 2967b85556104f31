"""Asking for a gradient where a tensor is made."""

from __future__ import annotations

import pytest
from rewriting import rewritten

from autograd_explain.rewrite import requires_grad_after, retain_grad_after

CASES = [
    ("h = f(x)  # act", None, "h = f(x)  # act\nh.retain_grad()"),
    ("out, h = f(x)", "h", "out, h = f(x)\nh.retain_grad()"),
    ("self.last = h = f(x)", "self.last", "self.last = h = f(x)\nself.last.retain_grad()"),
    ("if c: h = f(x)", None, "if c: h = f(x); h.retain_grad()"),
    ("a = 1; h = f(x); b = 2", "h", "a = 1; h = f(x); h.retain_grad(); b = 2"),
    ("out, h = f(x)", None, None),
    ("h = f(x)", "g", None),
    ("return_(f(x))", None, None),
]


@pytest.mark.parametrize(("before", "expr", "after"), CASES)
def test_retain_grad(before: str, expr: str | None, after: str | None) -> None:
    assert rewritten(retain_grad_after, before, before, expr) == after


def test_requires_grad() -> None:
    assert rewritten(requires_grad_after, "x = load()", "x") == "x = load()\nx.requires_grad_()"
