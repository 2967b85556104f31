"""What a terminal shows while rewrites are tried."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from typing import Any

import pytest

from autograd_explain.intercept.progress import TerminalProgress, progress_for
from autograd_explain.intercept.verification import Verifier

FAILS = "%%autograd_check\nh = w.exp()\nh += 1\nh.sum().backward()"


class Terminal(io.StringIO):
    encoding = "utf-8"  # type: ignore[assignment]

    def isatty(self) -> bool:
        return True


def test_no_one_is_told_where_no_one_looks(shell: Any) -> None:
    assert progress_for(shell, "en") is None


def test_a_line_stands_and_goes_away(
    run: Callable[[str], Any], shell: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    run("import torch\nw = torch.ones(2, requires_grad=True)")
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    assert isinstance(progress_for(shell, "en"), TerminalProgress)
    run(FAILS)
    shown = screen.getvalue()
    first, _, rest = shown.partition("trying the rewrites (2)")
    assert "was overwritten" not in first and "was overwritten" in rest
    assert "2 of 2 rewrites tried" in rest and "verified" in rest
    report = rest.rpartition("rewrites tried")[2]
    assert "\x1b[2K" in report.partition("was overwritten")[0]  # the line is erased


def test_interrupted_before_the_first_was_tried_the_report_stays(
    run: Callable[[str], Any], session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(self: Verifier) -> None:
        raise KeyboardInterrupt

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(Verifier, "_load", interrupted)
    run("import torch\nw = torch.ones(2, requires_grad=True)")
    monkeypatch.setattr(sys, "stdout", screen := Terminal())
    run(FAILS)
    assert "was overwritten" in screen.getvalue()
    assert {r.reason.key for r in session.last.diagnosis.rewrites} == {"interrupted"}
