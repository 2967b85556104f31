"""Where what was frozen for another optimizer's turn is thawed, and how that is written."""

from __future__ import annotations

import pytest
from knowledge.played import added, edited, play

from autograd_explain.model import Outcome

HEAD = """# %%
import torch
from torch import nn
torch.manual_seed(0)
def freeze(net):
    for p in net.parameters():
        p.requires_grad = False
def set_flags(net, on):
    net.requires_grad_(on)
class Held(nn.Linear):
    def hold(self):
        freeze(self)
    def unhold(self):
        set_flags(self, True)
G, D = nn.Linear(2, 2), Held(2, 1)
g = torch.optim.SGD(G.parameters(), lr=0.1)
d = torch.optim.SGD(D.parameters(), lr=0.1)
z, real = torch.randn(8, 2), torch.randn(8, 2)
# %%
"""
JUDGED = """
    d.zero_grad()
    loss = D(G(z)).mean() - D(real).mean()
    loss.backward()
    d.step()"""
PAINTED = """
    g.zero_grad()
    (-D(G(z)).mean()).backward()
    g.step()"""
LOOP = "for i in range(3):"
BY_HAND = "for p in D.parameters():\n        p.requires_grad = False"


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("cell", "fix", "lines"),
    [
        (f"{LOOP}\n    D.hold(){PAINTED}{JUDGED}", "thaw_behind", ["D.unhold()"]),
        (f"{LOOP}\n    freeze(D){PAINTED}{JUDGED}", "thaw_behind", ["D.requires_grad_(True)"]),
        (
            f"{LOOP}{JUDGED}\n    set_flags(D, False){PAINTED}",
            "thaw_behind",
            ["set_flags(D, True)"],
        ),
        (
            f"{LOOP}\n    {BY_HAND}{PAINTED}{JUDGED}",
            "thaw_behind",
            ["p.requires_grad = True"],
        ),
        (
            f"{LOOP}\n    freeze(D){PAINTED}{JUDGED}\n    D.requires_grad_()",
            "thaw_behind",
            [],  # moved
        ),
        (
            f"set_flags(D, on=False)\n{LOOP}{JUDGED}{PAINTED}",
            "thaw_before",
            ["set_flags(D, on=True)"],
        ),
        (
            "def look(net):\n    freeze(net)\n    return net(z).mean()\n"
            f"shown = [look(D)]\n{LOOP}{JUDGED}{PAINTED}",
            "thaw_before",
            ["net.requires_grad_(True)"],
        ),
    ],
)
def test_it_is_thawed_in_time(cell: str, fix: str, lines: list[str]) -> None:
    cells = tuple(c.strip("\n") for c in (HEAD + cell).split("# %%\n")[1:])
    found = play(cells, watched=True, verify=True).diagnosis
    assert found is not None and found.finding.cause == "frozen_while_stepped"
    first = found.rewrites[0]
    assert (first.fix, first.outcome, first.reason.key) == (fix, Outcome.RUNS, "stepped")
    assert [line.strip() for line in added(cells, edited(cells, first))] == lines


ENSEMBLE = """
def use(one, other):
    set_flags(one, True)
    set_flags(other, False)
    return one(z)
B = nn.Linear(2, 1)
both = torch.optim.SGD([*D.parameters(), *B.parameters()], lr=0.1)
for i in range(3):
    loss = (use(D, B) * use(B, D)).mean()
    both.zero_grad()
    loss.backward()
    both.step()"""
THAWED = [
    "for group in both.param_groups:",
    'for parameter in group["params"]:',
    "parameter.requires_grad_(True)",
]
COPIED = """
import copy
T = copy.copy(D)
for p in T.parameters():
    p.requires_grad = False
both = torch.optim.SGD([*G.parameters(), *D.parameters()], lr=0.1)
for i in range(3):
    both.zero_grad()
    (D(G(z)) - T(real)).mean().backward()
    both.step()"""


@pytest.mark.parametrize(
    ("cell", "cause", "fix", "lines"),
    [
        (ENSEMBLE, "set_flags(other, False)", "thaw_held", THAWED),
        (COPIED, "T = copy.copy(D)", "deep_copy", ["T = copy.deepcopy(D)"]),
    ],
)
def test_what_shares_a_flag_is_parted(cell: str, cause: str, fix: str, lines: list[str]) -> None:
    cells = tuple(c.strip("\n") for c in (HEAD + cell).split("# %%\n")[1:])
    found = play(cells, watched=True, verify=True).diagnosis
    assert found is not None and found.finding.cause == "frozen_while_stepped"
    assert found.finding.events[0].place.source == cause
    assert "D.bias" in found.finding.facts["parameters"].split(", ")
    first = found.rewrites[0]
    assert (first.fix, first.outcome, first.reason.key) == (fix, Outcome.RUNS, "stepped")
    assert [line.strip() for line in added(cells, edited(cells, first))] == lines


@pytest.mark.parametrize(
    ("old", "new"), [("T.parameters()", "D.parameters()"), ("(D(G(z)) - T(real))", "T(G(z))")]
)
def test_a_copy_that_is_shared_on_purpose_is_left_alone(old: str, new: str) -> None:
    cell = COPIED.replace(old, new)
    cells = tuple(c.strip("\n") for c in (HEAD + cell).split("# %%\n")[1:])
    assert play(cells, watched=True, verify=True).diagnosis is None
