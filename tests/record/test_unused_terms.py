"""Terms of a loss that train nothing: values were detached on their way into them, and what they
reach is cleared before its step."""

from __future__ import annotations

import pytest
from silent_programs import HEAD
from watching import signals

MODELS = (
    HEAD + "import torch.nn.functional as F\n"
    "made, judge = nn.Linear(3, 3), nn.Linear(3, 1)\nx, pool = torch.randn(4, 3), []\n"
    "first = torch.optim.SGD(made.parameters(), lr=0.1)\n"
    "second = torch.optim.SGD(judge.parameters(), lr=0.1)\n"
    "def pooled(fake):\n    pool.append(fake.detach())\n    return torch.cat(pool[-2:])\n"
)
TRAIN = """for _ in range(3):
    fake = made(x)
    old = pooled(fake)
    loss = F.softplus(judge(old)).mean()
    second.zero_grad()
    loss.backward()
    second.step()
    {}
    first.zero_grad()
    loss.backward()
    first.step()
"""


def test_a_term_that_reaches_what_is_cleared_is_found() -> None:
    loss = "loss = (fake - x).abs().mean()\n    loss += 0.5 * F.softplus(-judge(old)).mean()"
    (found,) = signals((MODELS, TRAIN.format(loss)))
    assert (found.name, found.evidence["way"]) == ("graph-cut", "unused")
    assert found.moments["cut"][0].place.source == "pool.append(fake.detach())"
    assert found.moments["backward"][0].place.line == 11


TOGETHER = """for i in range(6):
    fake = made(x)
    loss = (fake - x).abs().mean() + F.softplus(judge(fake.detach())).mean()
    loss.backward()
    first.step()
    first.zero_grad()
    if i % 2:
        second.step()
        second.zero_grad()
"""
RIGHT = {
    "of what has its graph": TRAIN.format(
        "loss = (fake - x).abs().mean() + F.softplus(-judge(fake)).mean()"
    ),
    "stepped in turn": TOGETHER,
    "of no sum": TRAIN.format("loss = (fake - x).abs().mean()\n    print(judge(old).mean() + 1)"),
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_term_that_trains_something_is_not_spoken_of(name: str) -> None:
    assert signals((MODELS, RIGHT[name])) == []
