"""A search repairs programs of which no cause knows anything."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from autograd_explain.model import (
    Confidence,
    Event,
    Finding,
    Kind,
    Outcome,
    Reason,
    Rewrite,
    Safety,
    What,
)
from autograd_explain.repair import search
from autograd_explain.verify import Reference

FORWARD = """
import torch
torch.manual_seed(0)
w = torch.randn(4, requires_grad=True)
"""


def found(played: Any, known: tuple[Rewrite, ...] = (), **options: Any) -> tuple[Rewrite, ...]:
    """What a search finds that knows only where the program stopped."""
    program = played.program
    last = program.cells[-1]
    place = last.place(len(last.lines))
    finding = Finding("unknown", Confidence.GENERAL, {}, events=(Event(What.FAILED, place),))
    return search(finding, played.request(**options), known)


VERIFIED = [
    ("y = w.exp()\nout = y * 2\ny += 1\n(out * y).sum().backward()", "out_of_place"),
    ("w += 1\n(w * 2).sum().backward()", "no_grad"),
    ("x = torch.ones(2, requires_grad=True).double()\nopt = torch.optim.SGD([x])", "leaf"),
]


@pytest.mark.parametrize(("cell", "operator"), VERIFIED)
def test_repairs_are_verified(play: Callable[..., Any], cell: str, operator: str) -> None:
    closing = "" if "backward" in cell else "\nx.sum().backward()"
    rewrites = found(play(FORWARD, cell + closing))
    assert rewrites[0].outcome is Outcome.VERIFIED
    assert any(operator in rewrite.fix for rewrite in rewrites)


def test_equal_mistakes_are_changed_together(play: Callable[..., Any]) -> None:
    cell = """
a = torch.ones(2, requires_grad=True).double()
b = torch.ones(2, requires_grad=True).double()
opt = torch.optim.SGD([a, b], lr=0.1)
(a * b).sum().backward()
"""
    first = found(play("import torch", cell))[0]
    assert first.outcome is Outcome.VERIFIED
    assert first.edits[0].diff.count("\n+") == 3  # the head of the diff is one of them


def test_an_edit_of_an_earlier_cell_is_found(play: Callable[..., Any]) -> None:
    layer = "def layer(x):\n    y = x.exp()\n    y *= 2\n    return y"
    first = found(play(FORWARD, layer, "layer(w).sum().backward()"))[0]
    assert first.outcome is Outcome.VERIFIED
    assert first.edits[0].cell == 2


def test_without_a_reference_the_graph_must_not_stay_cut(play: Callable[..., Any]) -> None:
    """`loss.requires_grad_()` would run as well, and give w no gradient."""
    rewrites = found(play(FORWARD, "loss = (w.detach() * 2).sum()\nloss.backward()"))
    assert rewrites
    assert all(rewrite.outcome is Outcome.RUNS for rewrite in rewrites)
    assert all("w * 2" in rewrite.edits[0].new_source for rewrite in rewrites)


def test_leaving_out_the_backward_is_no_repair(play: Callable[..., Any]) -> None:
    rewrites = found(play(FORWARD, "with torch.no_grad():\n    loss = w.sum()\nloss.backward()"))
    assert rewrites
    assert all("loss.backward()" in rewrite.edits[0].new_source for rewrite in rewrites)


def test_nothing_is_searched_where_the_cause_knew(play: Callable[..., Any]) -> None:
    played = play(FORWARD, "w += 1")
    known = (Rewrite("own", (), Safety.SAME_GRADIENTS, {}, Outcome.VERIFIED, Reason("agrees")),)
    assert found(played, known) == known
    assert found(played, kind=Kind.NOTE) == ()


def test_a_graph_that_stays_agrees_with_a_graph_that_is_kept(play: Callable[..., Any]) -> None:
    """`create_graph=True` keeps it as the reference does: that it agrees says nothing."""
    cell = "h = w.exp()\nfor _ in range(2):\n    (h * w).sum().backward()"
    assert all("create_graph" not in r.fix for r in found(play(FORWARD, cell)))


def own(played: Any, old: str, new: str) -> tuple[Rewrite, ...]:
    """A rewrite of the cause's own that was found to run."""
    edits = played.proposal((old, new)).edits
    return (Rewrite("own", edits, Safety.CHANGES_MEANING, {}, Outcome.RUNS, Reason("runs")),)


def test_a_rewrite_that_starves_a_leaf_does_not_end_the_search(play: Callable[..., Any]) -> None:
    played = play(FORWARD, "loss = (w.detach() * 2).sum()\nloss.backward()")
    known = own(played, "loss.back", "loss.requires_grad_()\nloss.back")
    rewrites = found(played, known)
    assert rewrites[0].fix == "repair_keep_in_graph"
    assert rewrites[-1] == known[0]


def test_a_rewrite_that_evidence_finds_no_fault_with_is_enough(play: Callable[..., Any]) -> None:
    played = play(FORWARD, "loss = (w.detach() * 2).sum()\nloss.backward()")
    known = own(played, "w.detach()", "w")
    assert found(played, known) == known


SLOW = "import time\ntime.sleep(0.3)\nfor _ in 3 * [0]:\n    undefined(w)"


def test_a_search_is_ended_by_its_time(play: Callable[..., Any]) -> None:
    played = play(FORWARD, SLOW)
    started = time.monotonic()
    found(played, seconds=1.0, reference=Reference.LENIENT)
    assert time.monotonic() - started < 20.0  # 240 candidates would take more than a minute


def test_without_time_nothing_is_searched(
    play: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = sys.modules[search.__module__]
    monkeypatch.setattr(module, "candidates", lambda *_: pytest.fail("searched"))
    assert found(play(FORWARD, "w += 1"), seconds=0.0) == ()


def test_an_interrupt_ends_the_search(play: Callable[..., Any]) -> None:
    played = play(FORWARD, SLOW)
    timer = threading.Timer(1.0, signal.pthread_kill, (threading.get_ident(), signal.SIGINT))
    timer.start()
    try:
        assert found(played, seconds=60.0, reference=Reference.LENIENT) == ()
        assert timer.finished.is_set()
    finally:
        timer.cancel()


def test_what_only_silences_the_error_is_not_shown(play: Callable[..., Any]) -> None:
    """Nothing tells a repair from it where there is no reference."""
    cell = "def check(x, strict=False):\n    assert not strict\ncheck(w, strict=True)"
    assert found(play(FORWARD, cell)) == ()


def test_of_a_long_program_the_end_is_searched(play: Callable[..., Any]) -> None:
    long = "\n".join(f"a{n} = torch.ones(2) * {n}" for n in range(1500))
    first = found(play(FORWARD, long, "y = w.exp()\ny += 1\ny.sum().backward()"))[0]
    assert first.outcome is Outcome.VERIFIED
    assert first.edits[0].cell == 3
