"""A stack or traceback that a watched program has formatted is the one that it has without us."""

from __future__ import annotations

import textwrap
import traceback
import warnings
from contextlib import nullcontext
from traceback import StackSummary
from typing import Any

import pytest
import torch

from autograd_explain.intercept import guard
from autograd_explain.program import Program, Source
from autograd_explain.record import Recording

START = """
import io
import logging
import traceback
import warnings
import torch
out = io.StringIO()
w = torch.zeros(2, requires_grad=True)
def show(*_):
    traceback.print_stack(file=out)
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        show()
        return x * 2
    @staticmethod
    def backward(ctx, g):
        show()
        return g[5]
class Root(torch.nn.Module):
    def forward(self, x):
        show()
        return torch.sqrt(x)
"""
#: Each writes to `out`.
PROGRAMS = {
    "anomaly mode": """
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with torch.autograd.detect_anomaly():
                try:
                    (Root()(w) * 0).sum().backward()
                except RuntimeError:
                    traceback.print_exc(file=out)
        for c in caught:
            out.write(f"{c.message} {c.filename} {c.lineno}")
    """,
    "hooks": """
        y = w * 1
        y.register_hook(show)
        layer = torch.nn.Linear(2, 2)
        layer.register_forward_hook(show)
        layer(w)
        y.sum().backward()
        opt = torch.optim.SGD([w], lr=0.1)
        opt.register_step_post_hook(show)
        opt.step()
        opt.step(lambda: show() or w.sum())
        out.write(str(StackSummary.extract(traceback.walk_stack(None), limit=2)))
        traceback.print_stack(file=out, limit=-1)
    """,
    "logging": """
        log = logging.Logger("of the program's")
        log.addHandler(logging.StreamHandler(out))
        log.warning("here", stack_info=True)
        try:
            Double.apply(w.exp()).sum().backward()
        except IndexError:
            log.exception("failed")
    """,
    "errors": """
        for fail in (
            lambda: w.add_(1), lambda: w.split("a"), lambda: w.norm(dim="x"), lambda: w @ w[:1],
            lambda: torch.nn.Linear(2, 3)(torch.ones(5)), lambda: torch.einsum("ij", w),
            lambda: torch.nn.functional.one_hot(w), lambda: w.unflatten(0, (3, 3)),
            lambda: w.register_hook(7) or (w * 2).backward(), lambda: torch.autograd.grad(w, w),
            lambda: torch.nn.functional.max_pool2d(w, 3), lambda: list(torch.ones(()) * w.sum()),
        ):
            try:
                try:
                    fail()
                except Exception as error:
                    raise ValueError from error
            except ValueError as error:
                out.write(traceback.format_exc() + traceback.format_exc(limit=1))
                out.write(str(traceback.extract_tb(error.__cause__.__traceback__, limit=-1)))
    """,
}


def formatted(text: str, watched: bool) -> str:
    text = START + "from traceback import StackSummary\n" + textwrap.dedent(text)
    program = Program([Source(1, None, text, text, "<cell>")])
    code = compile(text, "<cell>", "exec")
    namespace: dict[str, Any] = {"__name__": "__main__"}
    with warnings.catch_warnings(), Recording().watching(program, 1) if watched else nullcontext():
        exec(code, namespace)
    written: str = namespace["out"].getvalue()
    return written


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
def test_the_same_text(text: str) -> None:
    plain, watched = formatted(text, False), formatted(text, True)
    assert "<cell>" in plain and watched == plain


def test_nothing_is_left_behind() -> None:
    before = dict(vars(StackSummary))
    formatted("", True)
    assert dict(vars(StackSummary)) == before


def test_what_the_program_puts_in_its_place_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("extract", "_extract_from_extended_frame_gen"):
        if place in vars(StackSummary):  # put back by pytest
            monkeypatch.setattr(StackSummary, place, vars(StackSummary)[place])
    formatted(
        """
        class Kept:
            before = StackSummary.extract.__func__
        StackSummary.extract = classmethod(lambda *a, **k: Kept.before(*a, **k))
        name = "_extract_from_extended_frame_gen"
        if name in vars(StackSummary):
            setattr(StackSummary, name, classmethod(getattr(StackSummary, name).__func__))
        """,
        True,
    )
    assert StackSummary.extract.__func__.__name__ == "<lambda>"  # type: ignore[attr-defined]
    assert "test_what" in "".join(traceback.format_stack())


def test_an_error_inside_us_shows_where() -> None:
    guard.clear()
    with Recording().watching(Program(), None), guard.guarded("record"):
        torch.overrides.handle_torch_function(None, (), None)  # type: ignore[arg-type, var-annotated]
    shown = guard.report()
    guard.clear()
    assert "in guarded" in shown and "overrides.py" in shown
