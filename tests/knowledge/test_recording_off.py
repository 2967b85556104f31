"""A loss whose graph stops where recording was off: found beside a stop-gradient of another
optimizer's loss, and recorded again."""

from __future__ import annotations

import pytest
from knowledge.played import edited
from knowledge.test_partial_cuts import played

from autograd_explain.model import What

MODELS = """import torch
from torch import nn
torch.manual_seed(0)
decoder = nn.Sequential(nn.Linear(4, 9), nn.Sigmoid(), nn.Unflatten(1, (1, 3, 3)))
judge = nn.Sequential(nn.Flatten(), nn.Linear(9, 1))
opt_dec = torch.optim.SGD(decoder.parameters(), lr=0.1)
opt_judge = torch.optim.SGD(judge.parameters(), lr=0.1)
kernel = torch.full((1, 1, 3, 3), 1 / 9)
"""
DECORATED = """@torch.no_grad()
def blurred(image):
    return nn.functional.conv2d(image, kernel, padding=1)
"""
BLOCK = """def blurred(image):
    with torch.no_grad():
        image = nn.functional.conv2d(image, kernel, padding=1)
    return image
"""
STEPS = """for _ in range(3):
    sample = decoder(torch.randn(5, 4)).detach()
    gap = judge(blurred(sample)).mean() - judge(torch.rand(5, 1, 3, 3)).mean()
    opt_judge.zero_grad()
    gap.backward()
    opt_judge.step()
    cost = -judge(blurred(decoder(torch.randn(5, 4)))).mean()
    opt_dec.zero_grad()
    cost.backward()
    opt_dec.step()
"""


@pytest.mark.parametrize(("function", "line"), [(DECORATED, 1), (BLOCK, 2)])
def test_the_switch_goes_that_the_loss_of_the_lacking_optimizer_met(
    function: str, line: int
) -> None:
    found = played((MODELS, function, STEPS)).diagnosis
    assert found is not None and found.finding.cause == "silent_cut"
    causes = [e.place for e in found.finding.events if e.what is What.CAUSE]
    assert [(p.cell, p.line) for p in causes if p is not None] == [(2, line)]
    assert "no_grad" not in edited((MODELS, function, STEPS), found.rewrites[0])[1]
