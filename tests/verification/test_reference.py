"""The reference run: whose gradients they are, and what may not disturb them."""

import sys

import pytest
import torch

from autograd_explain.model import Outcome

CELL = """
import torch
w = torch.ones(3, requires_grad=True)
y = w.exp()
y.mul_(2)
y.sum().backward()
"""
EDIT = ("y.mul_(2)", "y = y.mul(2)")


def test_graphs_with_hooks_of_their_own_that_are_not_used_are_no_doubt(play):
    """Elsewhere in the process a graph is alive whose saved tensors are someone else's."""
    with torch.autograd.graph.save_on_cpu():
        other = torch.ones(3, requires_grad=True).exp()
    assert play(CELL).try_out(EDIT).outcome is Outcome.VERIFIED
    assert other.grad_fn is not None


def test_graphs_that_are_damaged_but_not_used_are_no_doubt(play):
    other = torch.ones(3, requires_grad=True).exp()
    other.mul_(2)
    assert play(CELL).try_out(EDIT).outcome is Outcome.VERIFIED


def test_a_graph_with_hooks_of_its_own_that_is_used_is_a_doubt(play):
    first = """
import torch
w = torch.ones(3, requires_grad=True)
with torch.autograd.graph.save_on_cpu():
    x = w.exp()
"""
    second = "y = x.exp()\ny.mul_(2)\ny.sum().backward()"
    rewrite = play(first, second).try_out(EDIT)
    assert rewrite.outcome is Outcome.VERIFIED  # from the first cell on


@pytest.mark.skipif(sys.platform != "linux", reason="needs a live copy")
def test_what_ran_from_the_live_copy_ran_even_if_the_cells_before_cannot_be_replayed(play):
    first = """
import subprocess, torch
subprocess.run(["true"], check=True)
w = torch.ones(3, requires_grad=True)
with torch.autograd.graph.save_on_cpu():
    x = w.exp()
"""
    second = "y = x.exp()\ny.mul_(2)\ny.sum().backward()"
    rewrite = play(first, second).try_out(EDIT)
    assert rewrite.outcome is Outcome.RUNS
    assert rewrite.reason.values["why"] == "older_graph"


def test_a_tensor_keeps_its_value_where_no_saved_part_was_written(play):
    """Each row is written before it is saved: only the version says that something was written."""
    played = play(
        """
import torch
w = torch.tensor([0.3, -0.2], requires_grad=True)
known = torch.arange(6.0).reshape(3, 2)
row, total = known[0], 0
for t in range(1, 3):
    y = w * row
    total = total + y.sum()
    row = known[t]
    row[0] = y[0]
total.backward()
"""
    )
    rewrite = played.try_out(("row = known[t]", "row = known[t].clone()"))
    assert rewrite.outcome is Outcome.VERIFIED
    assert rewrite.reason.values["kept"] == "known"
    moved = played.try_out(("row = known[t]", "known = known * 2\n    row = known[t].clone()"))
    assert moved.outcome is Outcome.DIFFERS


def test_a_part_saved_after_the_last_write_was_not_overwritten():
    from autograd_explain.verification.reference import SavedCopies

    copies = SavedCopies()
    w = torch.ones(2, requires_grad=True)
    kept = torch.zeros(3, 2)
    with copies.watch():
        first = w * kept[0]
        kept[1] = 5
        (w * kept[1]).sum().backward()
        assert copies.overwritten == []
        first.sum().backward()  # torch refuses this one, though kept[0] is as it was
    assert len(copies.overwritten) == 1


def test_a_tensor_of_which_it_cannot_be_told_is_neither_reached_nor_unreached(monkeypatch):
    from autograd_explain.verification import gradient_log as module
    from autograd_explain.verification.replay import Job, _awaited

    job = Job((), awaited=("w", "v"))
    space = {name: torch.ones(2, requires_grad=True) for name in "wv"}
    ledger = module.GradientLog(())
    with ledger.noting():
        (space["w"] * 2).sum().backward()
        got = _awaited(job, space, ledger)
        assert got["w"].tolist() == [2, 2] and got["v"] is None
        monkeypatch.setattr(module, "MAX_NODES", 2)
        long = space["v"]
        for _ in range(9):
            long = long * 2
        torch.autograd.grad(long.sum(), space["w"], allow_unused=True)
        long.sum().backward()
        space["v"].grad = None
    assert list(_awaited(job, space, ledger)) == ["w"]
