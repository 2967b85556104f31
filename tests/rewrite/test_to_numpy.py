"""Tensors handed to NumPy and to plots."""

from __future__ import annotations

from typing import Any

import pytest
from rewriting import program_of, result, rewritten, spot

from autograd_explain.rewrite import numbers_of_list, numpy_detach

CASES: list[tuple[str, str | None, dict[str, Any], str | None]] = [
    ("a = x.numpy()", None, {}, "a = x.detach().cpu().numpy()"),
    ("a = x.numpy()", None, {"cpu": False}, "a = x.detach().numpy()"),
    ("a = x.cpu().numpy()", None, {}, "a = x.detach().cpu().numpy()"),
    ("a = x.detach().numpy()", None, {}, "a = x.detach().cpu().numpy()"),
    ("a = (x * 2).numpy() + 1", None, {}, "a = (x * 2).detach().cpu().numpy() + 1"),
    ("a = x[0].numpy()  # c", None, {}, "a = x[0].detach().cpu().numpy()  # c"),
    ("f(a.numpy(), b.numpy())", "b", {}, "f(a.numpy(), b.detach().cpu().numpy())"),
    ("f(a.numpy(), b.numpy())", "b.numpy()", {}, "f(a.numpy(), b.detach().cpu().numpy())"),
    ("f(a.numpy(), b.numpy())", None, {}, None),
    ("plt.plot(t, x)", "x", {}, "plt.plot(t, x.detach().cpu().numpy())"),
    ("a = np.asarray(x)", "x", {}, "a = np.asarray(x.detach().cpu().numpy())"),
    ("a = x.detach().cpu().numpy()", None, {}, None),
    ("a = x.sum()", None, {}, None),
]


@pytest.mark.parametrize(("before", "expr", "options", "after"), CASES)
def test_numpy_detach(
    before: str, expr: str | None, options: dict[str, Any], after: str | None
) -> None:
    assert rewritten(numpy_detach, before, before, expr, **options) == after


def test_the_span_chooses() -> None:
    program = program_of("f(a.numpy(), b.numpy())")
    text = result(numpy_detach(program, spot(program, "b.numpy()")))
    assert text == "f(a.numpy(), b.detach().cpu().numpy())"


LISTS = [
    ("np.array(self.losses)", "self.losses", True, "np.array([t.item() for t in self.losses])"),
    ("np.array(t)", "t", False, "np.array([v.detach().cpu().numpy() for v in t])"),
    ("plt.plot(losses, x)", "losses", True, "plt.plot([t.item() for t in losses], x)"),
    ("plt.plot(x)", "losses", True, None),
]


@pytest.mark.parametrize(("before", "expr", "scalars", "after"), LISTS)
def test_lists(before: str, expr: str, scalars: bool, after: str | None) -> None:
    assert rewritten(numbers_of_list, before, before, expr, scalars=scalars) == after
