"""What speaks against a rewrite that runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from autograd_explain.verification import evidence_against

MODEL = """
import torch
torch.manual_seed(0)
a = torch.randn(3, requires_grad=True)
b = torch.randn(3, requires_grad=True)
"""
CUT = "h = (a * b).detach()\nh.sum().backward()"
TWICE = """
kept = a.exp()
for _ in range(2):
    (kept * b + 1e-3 * kept).sum().backward()
"""


TEACHER = """
for _ in range(2):
    loss = (a * b.exp().detach()).sum()
    loss.backward()
    b.mul_(0.9)
"""


@pytest.mark.parametrize(
    ("cell", "old", "new", "against"),
    [
        (CUT, "(a * b).detach()", "a * b", 0),
        (CUT, "(a * b).detach()", "a * b.detach()", 2),
        (CUT, "h.sum()", "(h + 0 * a).sum()", 2),
        (CUT, "h.sum()", "(a * b).sum()", 0),
        (CUT, "h.sum()", "(a + b).sum()", 1),  # the loss is another
        (CUT, "h.sum()", "a.sum()", 1),
        (CUT, "h.sum().backward()", "pass", 2),
        (TWICE, "    (kept", "    kept = a.exp()\n    (kept", 0),
        (TWICE, "(kept *", "kept = kept.detach()\n    (kept *", 3),
        # The gradients that the first backward gave.
        (TWICE, "(kept * b + 1e-3", "kept = a.exp()\n    (kept * b + 1e-3 * kept.detach() + 0", 1),
        (TWICE, "(kept *", "kept = kept.detach() + 1\n    (kept *", 3),  # the first loss
        (
            TEACHER,
            "    b.mul_(0.9)",
            "    with torch.no_grad():\n        b.mul_(0.9)",
            0,
        ),  # is meant
    ],
)
def test_evidence(play: Callable[..., Any], cell: str, old: str, new: str, against: int) -> None:
    played = play(MODEL, cell)
    assert evidence_against([played.proposal((old, new))], played.request()) == (against,)


def test_what_is_no_error_may_change_what_came_before(play: Callable[..., Any]) -> None:
    played = play(MODEL, "(a * b).sum().backward()\ngiven = (a * b).grad")
    proposal = played.proposal((".sum()", ".mean()"))
    assert evidence_against([proposal], played.request()) == (0,)
