"""Where the session cannot be forked, a fresh process replays the cells."""

import pytest

from autograd_explain.model import Outcome
from autograd_explain.verification import coordinator, verifier

CELLS = (
    "import torch\ntorch.manual_seed(0)\nw = torch.randn(3, requires_grad=True)",
    "y = w.exp()\ny.mul_(2)\ny.sum().backward()",
)
EDIT = ("y.mul_(2)", "y = y.mul(2)")


def test_a_fresh_process_when_a_device_is_in_use(play, monkeypatch):
    monkeypatch.setattr(verifier, "can_fork", lambda: False)
    played = play(*CELLS, checkpoint=False)
    assert played.try_out(EDIT).outcome is Outcome.VERIFIED
    assert played.try_out(("y.mul_(2)", "y = y.mul(3)")).outcome is Outcome.DIFFERS


def test_its_time_is_bounded_too(play, monkeypatch):
    monkeypatch.setattr(verifier, "can_fork", lambda: False)
    played = play(CELLS[0], CELLS[1] + "\nimport time; time.sleep(60)", checkpoint=False)
    rewrite = played.try_out(EDIT, seconds=6.0)
    assert rewrite.outcome is Outcome.NOT_TRIED and rewrite.reason.key == "budget"


@pytest.mark.timeout(120)
def test_one_process_for_each_replay_where_no_fork_is_safe(play, monkeypatch):
    """As on macOS and Windows."""
    monkeypatch.setattr(coordinator, "can_fork", lambda: False)
    played = play(*CELLS, checkpoint=False)
    assert played.try_out(EDIT, seconds=90.0).outcome is Outcome.VERIFIED
