"""Gradients cleared too late, too early or never, in watched sessions."""

from __future__ import annotations

import pytest
from knowledge.played import edited, play
from knowledge.test_cases import run

from autograd_explain.render.topic_content import cells_of

HEAD = """# %%
import torch
from torch import nn
torch.manual_seed(0)
gen, disc = nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
opt_g = torch.optim.SGD(gen.parameters(), lr=0.1)
opt_d = torch.optim.SGD(disc.parameters(), lr=0.1)
# %%
"""

PROGRAMS = {
    "cleared behind the own step, filled by the other network's loss": (
        """
def train(x):
    d_loss = disc(x).mean() - disc(gen(x).detach()).mean()
    d_loss.backward()
    opt_d.step()
    opt_d.zero_grad()
    g_loss = -disc(gen(x)).mean()
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()
for x in torch.randn(4, 5, 2):
    train(x)
""",
        "    opt_d.zero_grad()\n    d_loss.backward()",
    ),
    "the same for a second pair, where the first had one round": (
        """
def made():
    nets = nn.Linear(2, 2), nn.Linear(2, 1)
    return *nets, *(torch.optim.SGD(net.parameters(), lr=0.1) for net in nets)
def train(gen, disc, opt_g, opt_d, x):
    d_loss = disc(x).mean() - disc(gen(x).detach()).mean()
    d_loss.backward()
    opt_d.step()
    opt_d.zero_grad()
    g_loss = -disc(gen(x)).mean()
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()
for rounds in (2, 4):
    pair = made()
    for x in torch.randn(rounds, 5, 2):
        train(*pair, x)
""",
        "    opt_d.zero_grad()\n    d_loss.backward()",
    ),
    "the other network's loss in between": (
        """
def train(x):
    opt_g.zero_grad()
    d_loss = disc(x).mean() - disc(gen(x).detach()).mean()
    d_loss.backward()
    opt_d.step()
    opt_g.zero_grad()
    g_loss = disc(gen(x)).mean()
    g_loss.backward()
    opt_g.step()
for x in torch.randn(4, 5, 2):
    train(x)
""",
        "    opt_d.zero_grad()\n    d_loss.backward()",
    ),
    "several backwards for one step, behind the other's": (
        """
for x in torch.randn(4, 6, 2):
    for part in x.split(3):
        d_loss = disc(part).mean() - disc(gen(part).detach()).mean()
        d_loss.backward()
    opt_d.step()
    opt_g.zero_grad()
    disc(gen(x)).mean().backward()
    opt_g.step()
""",
        "    opt_d.zero_grad()\n    for part in x.split(3):",
    ),
    "a leaf that is updated by hand": (
        """
def attack(x):
    delta = torch.zeros_like(x, requires_grad=True)
    for _ in range(4):
        (-disc(x + delta)).sum().backward()
        delta.data = (delta.data + 0.1 * delta.grad.sign()).clamp(-1, 1)
    return x + delta.detach()
attack(torch.randn(4, 2))
""",
        "0.1 * delta.grad.sign()).clamp(-1, 1)\n        delta.grad = None",
    ),
    "weights that are updated by hand": (
        """
for x in torch.randn(4, 5, 2):
    disc(x).pow(2).mean().backward()
    with torch.no_grad():
        for p in disc.parameters():
            p -= 0.1 * p.grad
""",
        "            p -= 0.1 * p.grad\n            p.grad = None",
    ),
    "the rows of a derivative": (
        """
x = torch.randn(2, requires_grad=True)
y, rows = gen(x), []
for i in range(2):
    gen.zero_grad()
    y[i].backward(retain_graph=True)
    rows.append(x.grad.clone())
""",
        "    rows.append(x.grad.clone())\n    x.grad = None",
    ),
    "a function that gives the gradient": (
        """
def slope(x):
    disc(x).sum().backward()
    return x.grad
x = torch.randn(3, 2, requires_grad=True)
kept = [slope(x) for _ in range(2)]
""",
        "    x.grad = None\n    disc(x).sum().backward()",
    ),
    "two losses that both are meant": (
        """
for x in torch.randn(4, 5, 2):
    disc(x).mean().backward()
    disc(-x).pow(2).mean().backward()
    opt_d.step()
""",
        "    opt_d.step()\n    opt_d.zero_grad()",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    text, lines = PROGRAMS[name]
    cells = cells_of(HEAD + text.lstrip())
    found = play(cells, watched=True)
    assert found.trouble == ""
    assert found.diagnosis is not None, found.output
    assert found.diagnosis.finding.cause == "gradients_not_cleared"
    assert found.diagnosis.rewrites
    repaired = edited(cells, found.diagnosis.rewrites[0])
    assert lines in repaired[1]
    run(repaired)


QUIET = {
    "cleared before its backward": """
    opt_g.zero_grad()
    (-disc(gen(x)).mean()).backward()
    opt_g.step()
    opt_d.zero_grad()
    (disc(x).mean() - disc(gen(x).detach()).mean()).backward()
    opt_d.step()
""",
    "cleared by the model": """
    (disc(x).mean() - disc(gen(x).detach()).mean()).backward()
    opt_d.step()
    opt_g.zero_grad()
    opt_d.zero_grad()
    (-disc(gen(x)).mean()).backward()
    opt_g.step()
    disc.zero_grad()
""",
    "frozen meanwhile": """
    (disc(x).mean() - disc(gen(x).detach()).mean()).backward()
    opt_d.step()
    opt_d.zero_grad()
    disc.requires_grad_(False)
    opt_g.zero_grad()
    (-disc(gen(x)).mean()).backward()
    opt_g.step()
    disc.requires_grad_(True)
""",
    "an encoder that two heads share": """
    opt_d.zero_grad()
    for head, opt in heads:
        opt.zero_grad()
        head(disc(x)).square().mean().backward()
        opt.step()
    opt_d.step()
""",
    "two losses of two lines that an encoder is meant to follow": """
    opt_d.zero_grad()
    heads[0][1].zero_grad()
    heads[0][0](disc(x)).square().mean().backward()
    heads[0][1].step()
    heads[1][1].zero_grad()
    heads[1][0](disc(x)).square().mean().backward()
    heads[1][1].step()
    opt_d.step()
""",
    "gradients of several rounds": """
    disc(gen(x)).square().mean().backward()
    opt_g.step()
    opt_g.zero_grad()
    if i % 2:
        opt_d.step()
        opt_d.zero_grad()
""",
}


@pytest.mark.parametrize("name", QUIET)
def test_what_is_meant_is_left_alone(name: str) -> None:
    heads = "heads = [(h, torch.optim.SGD(h.parameters(), lr=0.1)) for h in "
    heads += "(nn.Linear(1, 1), nn.Linear(1, 1))]\n"
    loop = "for i, x in enumerate(torch.randn(8, 5, 2)):"
    found = play(cells_of(HEAD + heads + loop + QUIET[name]), watched=True)
    assert found.diagnosis is None, found.output


THROWN_AWAY = """
x = torch.randn(5, 2)
y = x.sum(1, keepdim=True)
for _ in range(3):
    loss = nn.functional.mse_loss(disc(x), y)
    loss.backward()
    opt_d.zero_grad()
    opt_d.step()
    print(loss.item())
"""


def test_gradients_thrown_away_are_not_cut_off() -> None:
    found = play(cells_of(HEAD + THROWN_AWAY.lstrip()), watched=True)
    assert found.diagnosis is not None, found.output
    assert found.diagnosis.finding.cause == "gradients_thrown_away"
    assert "gradients_thrown_away" in found.output
    assert "silent_cut" not in found.output


LATE = """
def train(rounds):
    for x in torch.randn(rounds, 5, 2):
        opt_d.zero_grad()
        disc(x).pow(2).mean().backward()
        opt_d.step()
        if rounds > 1:
            nn.utils.clip_grad_norm_(disc.parameters(), max_norm=0.1)
train(4)
"""


def test_what_comes_behind_the_step_goes_before_it() -> None:
    cells = cells_of(HEAD + LATE.lstrip())
    found = play(cells, watched=True)
    assert found.diagnosis is not None, found.output
    finding = found.diagnosis.finding
    assert (finding.cause, finding.variant) == ("gradients_thrown_away", "late")
    repaired = edited(cells, found.diagnosis.rewrites[0])
    assert repaired[1].endswith("max_norm=0.1)\n        opt_d.step()\ntrain(4)")
    run(repaired)
    assert play(repaired, watched=True).diagnosis is None
