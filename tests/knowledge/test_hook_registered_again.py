"""Hooks that every round registers once more on a parameter, and hooks that are meant so."""

from __future__ import annotations

import pytest
from knowledge.played import added, edited, play
from knowledge.test_partial_cuts import played
from notebook import cells_of

from autograd_explain.model import Outcome

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
            "removed",
            ["new_handle = net.weight.register_hook(halved)", "new_handle.remove()"],
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


EPOCHS = """def epoch(part):
{registered}
    for batch in x.split(2):
        loss = net(batch).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
for _ in range(5):
    epoch(net)
"""


def test_one_for_each_epoch() -> None:
    registered = "    for p in part.parameters():\n        p.register_hook(lambda g: g / 2)"
    cells = cells_of(START + EPOCHS.format(registered=registered))
    found = played(cells)
    assert found.diagnosis is not None, found.output
    finding, rewrite = found.diagnosis.finding, found.diagnosis.rewrites[0]
    assert finding.cause == "hook_registered_again" and finding.facts["times"] == "3"
    assert finding.tensors[0].names[0] == "net.weight" and rewrite.outcome is Outcome.VERIFIED
    assert added(cells, edited(cells, rewrite)) == [
        "handles = []",
        "handles.append(p.register_hook(lambda g: g / 2))",
        "for handle in handles:",
        "handle.remove()",
    ]


def test_a_hook_that_each_forward_registers_is_moved_to_where_the_module_is_made() -> None:
    hook = "        self.inner.register_forward_hook(lambda m, i, out: 0.9 * out)"
    module = f"""class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 2)
    def forward(self, x):
{hook}
        return self.inner(x)
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
# %%
"""
    lines = "".join(f"    {line}\n" for line in [*BODY.splitlines(), "opt.step()"])
    cells = cells_of(START + module + LOOP.format(rounds=5) + lines)
    found = played(cells)
    assert found.diagnosis is not None, found.output
    assert found.diagnosis.finding.tensors[0].names[0] == "net.inner"
    rewrite = found.diagnosis.rewrites[0]
    assert (rewrite.fix, rewrite.outcome) == ("in_init", Outcome.VERIFIED)
    text = edited(cells, rewrite)[1]
    assert text.index(hook) < text.index("def forward")


@pytest.mark.parametrize(
    "registered",
    [
        "    part.weight.register_hook(lambda g: g * torch.tensor([[1.0], [0.0]]))",
        "    part.register_forward_hook(lambda m, i, out: sizes.append(out.shape))",
        "    part.register_full_backward_pre_hook(lambda m, o: sizes.append(o[0].norm()))",
    ],
)
def test_what_makes_no_difference_is_meant(registered: str) -> None:
    found = played(cells_of(START + EPOCHS.format(registered=registered)))
    assert found.diagnosis is None and "could not be explained" not in found.output, found.output


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
