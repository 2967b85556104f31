"""Hooks that every round registers once more on a parameter, and hooks that are meant so."""

from __future__ import annotations

import pytest
from knowledge.played import added, edited, play
from notebook import cells_of

START = """# %%
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(3, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, sizes = torch.randn(8, 3), []
def halved(g):
    return g / 2
def logged(g):
    sizes.append(g.norm())
# %%
"""
LOOP = "for step in range({rounds}):\n"
BODY = "loss = net(x).square().mean()\nopt.zero_grad()\nloss.backward()\n"


def program(hook: str, after: str = "", rounds: int = 5) -> list[str]:
    lines = [*hook.splitlines(), *BODY.splitlines(), *after.splitlines(), "opt.step()"]
    return cells_of(START + LOOP.format(rounds=rounds) + "".join(f"    {n}\n" for n in lines))


@pytest.mark.parametrize(
    ("hook", "fix", "lines"),
    [
        (
            "net.weight.register_hook(halved)",
            "before_loop",
            ["net.weight.register_hook(halved)"],
        ),
        (
            "net.weight.register_hook(lambda g: g * (1 if step else 2))",
            "removed",
            [
                "new_handle = net.weight.register_hook(lambda g: g * (1 if step else 2))",
                "new_handle.remove()",
            ],
        ),
        (
            "part = step / 9\nnet.weight.register_hook(lambda g: g * part)",
            "removed",
            ["new_handle = net.weight.register_hook(lambda g: g * part)", "new_handle.remove()"],
        ),
    ],
)
def test_it_is_told_once(hook: str, fix: str, lines: list[str]) -> None:
    cells = program(hook)
    found = play(cells, watched=True)
    assert found.diagnosis is not None and found.trouble == "", found.output
    finding, rewrites = found.diagnosis.finding, found.diagnosis.rewrites
    assert finding.cause == "hook_registered_again"
    assert finding.tensors[0].names[0] == "net.weight" and finding.facts["times"] == "3"
    assert rewrites[0].fix == fix
    repaired = edited(cells, rewrites[0])
    assert added(cells, repaired) == lines
    assert play(repaired, watched=True).diagnosis is None


@pytest.mark.parametrize(
    ("hook", "after"),
    [
        ("net.weight.register_hook(logged)", ""),
        ("net.weight.register_hook(lambda g: sizes.append(g))", ""),
        ("handle = net.weight.register_hook(halved)", "handle.remove()"),
        ("h = net(x)\nh.register_hook(halved)\nh.sum().backward()", ""),
        ("if step == 0: net.weight.register_hook(halved)", ""),
        ("net = nn.Linear(3, 2)\nnet.weight.register_hook(halved)\n"
         "opt = torch.optim.SGD(net.parameters(), lr=0.1)", ""),
    ],
)  # fmt: skip
def test_others_are_meant(hook: str, after: str) -> None:
    found = play(program(hook, after), watched=True)
    causes = [] if found.diagnosis is None else [found.diagnosis.finding.cause]
    assert "hook_registered_again" not in causes and found.trouble == "", found.output
