"""A search repairs programs of which no cause knows anything."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from verification.test_checkpoint import children

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
from autograd_explain.verification import Reference, verify_all

#: A busy machine makes everything late; on a quiet one it is half a second.
SLACK = 4.0

FORWARD = """
import torch
torch.manual_seed(0)
w = torch.randn(4, requires_grad=True)
"""


def found(
    played: Any,
    known: tuple[Rewrite, ...] = (),
    failed: tuple[Rewrite, ...] = (),
    **options: Any,
) -> tuple[Rewrite, ...]:
    """What a search finds that knows only where the program stopped."""
    last = played.program.cells[-1]
    stack = traceback.extract_tb(played.error.__traceback__ if played.error else None)
    lines = [frame.lineno for frame in stack if frame.filename == last.filename]
    place = last.place(lines[-1] if lines else len(last.lines))
    finding = Finding("unknown", Confidence.GENERAL, {}, events=(Event(What.FAILED, place),))
    return search(finding, played.request(**options), known, failed)


VERIFIED = [
    ("y = w.exp()\nout = y * 2\ny += 1\n(out * y).sum().backward()", "out_of_place"),
    ("w += 1\n(w * 2).sum().backward()", "no_grad"),
    ("x = torch.ones(2, requires_grad=True).double()\nopt = torch.optim.SGD([x])", "leaf"),
]


@pytest.mark.one_in(2)
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


def test_a_graph_may_end_between_rounds(play: Callable[..., Any]) -> None:
    """Nothing is verified, as the reference reaches back, which nobody may have meant."""
    cell = """
h = torch.zeros(4)
for x in torch.ones(3, 4):
    h = torch.tanh(h * w + x)
    h.sum().backward()
"""
    rewrites = found(play(FORWARD, cell))
    carried = [r for r in rewrites if r.fix == "repair_detach_carried"]
    assert [r.outcome for r in carried] == [Outcome.DIFFERS]


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


STATE = """
class Keeps:
    def __init__(self):
        self.last = None
keeps, key = Keeps(), torch.randn(4, requires_grad=True)
def score(x):
    k = x * key
    keeps.last = k if keeps.last is None else keeps.last + k
    return (keeps.last * w).sum()
for _ in range(3):
    score(torch.ones(4)).backward()
"""


def test_a_cut_that_starves_a_leaf_comes_last(play: Callable[..., Any]) -> None:
    """It is meant to differ from the reference, but `key` had a gradient before the failure."""
    played = play(FORWARD, STATE)
    kept = "a = keeps.last\n    keeps.last = a.detach()\n    return (a * w)"
    changes = ("x * key", "x * key.detach()"), ("return (keeps.last * w)", kept)
    reason = Reason("differs", {"names": "key.grad"})
    cut, other = (
        Rewrite("own", edits, Safety.CHANGES_MEANING, {}, Outcome.DIFFERS, reason)
        for edits in (played.proposal(change).edits for change in changes)
    )
    assert found(played, (cut, other)) == (other, cut)


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
    long = "\n".join(f"a{n} = torch.ones(2) * {n}" for n in range(1100))
    first = found(play(FORWARD, long, "y = w.exp()\ny += 1\ny.sum().backward()"))[0]
    assert first.outcome is Outcome.VERIFIED
    assert first.edits[0].cell == 3


TWO_OVERWRITTEN = """
def scaled(t):
    t *= 2
    return t
a = w.exp()
b = w.sigmoid()
a += 1
(a * scaled(b)).sum().backward()
"""
CUT_LATER = """
a = w.exp()
a += 1
a.sum().backward()
(w.detach() * 2).sum().backward()
"""


@pytest.mark.one_in(2)
@pytest.mark.parametrize("cell", [TWO_OVERWRITTEN, CUT_LATER])
def test_two_edits_where_the_first_moved_the_failure(play: Callable[..., Any], cell: str) -> None:
    first = found(play(FORWARD, cell))[0]
    assert first.fix == "repair_two"
    assert first.outcome is (Outcome.VERIFIED if cell is TWO_OVERWRITTEN else Outcome.RUNS)
    assert first.facts["first"] != first.facts["second"]


MEMORY = """
class Memory(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.rows = torch.ones(4, 3)
    def read(self, x):
        weights = (x @ self.rows.T).softmax(-1)
        found = weights @ self.rows
        self.rows += weights.T @ x
        return found
memory = Memory()
for x in torch.randn(3, 2, 3):
    memory.read(x * w[:3]).square().sum().backward()
"""


def test_the_second_edit_may_be_where_the_first_was(play: Callable[..., Any]) -> None:
    """What is no longer overwritten is carried on with its graph, which is cut there."""
    first = found(play(FORWARD, MEMORY))[0]
    assert (first.fix, first.outcome) == ("repair_two", Outcome.RUNS)
    (edit,) = first.edits
    assert "self.rows = (self.rows + weights.T @ x).detach()" in edit.new_source


def test_a_rewrite_of_the_cause_may_be_half_of_a_repair(
    play: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    written = "a = w.exp()\na[0] = 1\na.sum().backward()\n"
    played = play(FORWARD, f"{written}b = w.exp()\nb += 1\nb.sum().backward()")
    own = played.proposal(("a[0] = 1", "a = torch.cat([torch.ones(1), a[1:]])"))
    stay, failed = verify_all([own], played.request())
    assert not stay and len(failed) == 1
    monkeypatch.setattr(sys.modules[search.__module__], "candidates", lambda *_: [])
    first = found(played, failed=failed)[0]
    assert (first.fix, first.outcome) == ("repair_two", Outcome.VERIFIED)


LAYERS = """import torch
def layer(x):
    y = x.exp()
    y *= 2
    return y
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file beside the notebook."""
    path = tmp_path / "own_layers.py"
    path.write_text(LAYERS)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield path
    sys.modules.pop("own_layers", None)


USES_MODULE = ("import own_layers", f"{FORWARD}\nown_layers.layer(w).sum().backward()")


def test_an_edit_of_a_file_of_the_users_is_found(play: Callable[..., Any], module: Path) -> None:
    first = found(play(*USES_MODULE))[0]
    assert first.outcome is Outcome.VERIFIED
    assert first.edits[0].file == str(module)
    assert module.read_text() == LAYERS


def test_a_file_that_the_user_has_changed_stays(play: Callable[..., Any], module: Path) -> None:
    played = play(*USES_MODULE)
    module.write_text(f"# noted since\n{LAYERS}")
    assert all(edit.file is None for r in found(played) for edit in r.edits)


NET = """
from torch import nn
import copy
import numpy as np
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self, train=False):
        super().__init__()
        self.body, self.head, self.on = nn.Linear(4, 4), nn.Linear(4, 1), train
    def forward(self, x):
        with torch.set_grad_enabled(self.on):
            return self.head(self.body(x))
class Kept(Net):
    def forward(self, x):
        self.last = torch.relu(self.body(x))
        return self.head(self.last)
def f(x):
    return (x ** 3).sum(dim=1, keepdim=True)
x = torch.randn(8, 4)
"""
#: An operator, and a program that it lets run.
RUNNING = [
    ("with_graph", "net = Net()\nnet(x).sum().backward()"),
    ("keep_in_graph", "a = torch.from_numpy(np.exp(-w.detach().numpy()))\na.sum().backward()"),
]


@pytest.mark.parametrize(("operator", "cell"), RUNNING)
def test_what_runs_is_shown(play: Callable[..., Any], operator: str, cell: str) -> None:
    rewrites = found(play(FORWARD + NET, cell))
    assert operator in {r.fix.removeprefix("repair_") for r in rewrites}
    assert all(r.outcome is Outcome.RUNS for r in rewrites)


def test_nothing_is_left_after_searches(play: Callable[..., Any]) -> None:
    """Each tries candidates from the live copy, from the start, and pairs of them."""
    played = play(FORWARD, CUT_LATER)
    found(played, seconds=0.5)  # what is loaded with the first one stays
    files, processes = len(os.listdir("/proc/self/fd")), children()
    for number in range(40):
        found(played, seconds=0.5 if number % 20 == 0 else 0.02)
    # A process that the first one has used may have ended since.
    assert len(os.listdir("/proc/self/fd")) <= files and len(children()) <= len(processes)


def test_the_time_is_kept(play: Callable[..., Any]) -> None:
    played = play(FORWARD, SLOW)
    started = time.monotonic()
    found(played, seconds=4.0, reference=Reference.LENIENT)
    assert time.monotonic() - started < 4.0 + SLACK


def test_what_the_loss_contradicts_comes_last(play: Callable[..., Any]) -> None:
    """Without the part that goes through NumPy the gradient agrees with the reference, which lacks
    it too, but not with the loss."""
    cell = "d = w.square()\nb = torch.from_numpy(np.exp(-d.numpy()))\n(b + d).sum().backward()"
    rewrites = found(play(FORWARD + "import numpy as np", cell))
    assert rewrites[0].fix == "repair_keep_in_graph"
    assert "b = torch.exp(-d)" in rewrites[0].edits[0].new_source
