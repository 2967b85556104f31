"""A value that two losses use, the first only as a number: where its graph ends for that one."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from knowledge.played import added, edited, explained, play
from notebook import installed

from autograd_explain.model import Diagnosis, Outcome, What

NETWORKS = """
import torch
from torch import nn
torch.manual_seed(0)
gen = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
critic = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
opt_d = torch.optim.Adam(critic.parameters())
opt_g = torch.optim.Adam(gen.parameters())
data = [torch.randn(5, 3) for _ in range(3)]
"""

LOOP = """
for real in data:
    fake = gen(torch.randn(5, 4))
    opt_d.zero_grad()
    loss_d = critic(fake).mean() - critic(real).mean()
    loss_d.backward()
    opt_d.step()
    opt_g.zero_grad()
    loss_g = -critic(fake).mean()
    loss_g.backward()
    opt_g.step()
"""

JOINED = LOOP.replace(
    "loss_d = critic(fake).mean() - critic(real).mean()",
    "both = torch.cat((real, fake), 0)\n    loss_d = critic(both).mean()",
)

FUNCTION = "def step(real):" + LOOP.partition(":")[2] + "for real in data:\n    step(real)\n"

STRAIGHT = "real = data[0]\n" + textwrap.dedent(LOOP.partition(":\n")[2])

METHODS = """
class Training:
    def run(self, real):
        self.fake = gen(torch.randn(5, 4))
        opt_d.zero_grad()
        self.judge(real)
        opt_g.zero_grad()
        loss = -critic(self.fake).mean()
        loss.backward()
        opt_g.step()
    def judge(self, real):
        scores = critic(self.fake)
        loss = scores.mean() - critic(real).mean()
        loss.backward()
        opt_d.step()
training = Training()
for real in data:
    training.run(real)
"""


def proposed(found: Diagnosis) -> list[str]:
    return [r.fix for r in found.rewrites]


@pytest.mark.parametrize(
    ("program", "line"),
    [
        (LOOP, "loss_d = critic(fake.detach()).mean() - critic(real).mean()"),
        (JOINED, "both = torch.cat((real, fake.detach()), 0)"),
        (FUNCTION, "loss_d = critic(fake.detach()).mean() - critic(real).mean()"),
        (STRAIGHT, "loss_d = critic(fake.detach()).mean() - critic(real).mean()"),
        (METHODS, "scores = critic(self.fake.detach())"),
    ],
)
def test_the_first_loss_gets_the_value_alone(program: str, line: str) -> None:
    """The generator is trained on: the repaired program runs watched without a word."""
    cells = (NETWORKS, program)
    found = explained(cells)
    assert (found.finding.cause, found.finding.variant) == ("second_backward", "shared_apart")
    assert proposed(found) == ["detach_first", "retain_graph"]
    repaired = edited(cells, found.rewrites[0])
    assert added(cells, repaired) == [line]
    assert play(repaired, watched=True).diagnosis is None


SEVERAL = """
fake = gen(torch.randn(5, 4))
for real in data:
    opt_d.zero_grad()
    loss_d = critic(fake).mean() - critic(real).mean()
    loss_d.backward()
    opt_d.step()
opt_g.zero_grad()
loss_g = -critic(fake).mean()
loss_g.backward()
opt_g.step()
"""


def test_the_rounds_of_one_player_get_the_value_of_the_other_alone() -> None:
    cells = (NETWORKS, SEVERAL)
    found = explained(cells)
    repaired = edited(cells, found.rewrites[0])
    line = "loss_d = critic(fake.detach()).mean() - critic(real).mean()"
    assert added(cells, repaired) == [line]
    assert play(repaired, watched=True).diagnosis is None


@pytest.mark.parametrize("end", ["opt_g.step()\n", "loss_g = -critic(fake).mean()\n"])
def test_not_where_the_rounds_train_the_other_too(end: str) -> None:
    """What the rounds hand on to the generator is stepped behind the loop."""
    found = explained((NETWORKS, SEVERAL.partition("opt_g.zero_grad()")[0] + end))
    assert proposed(found)[0] == "recompute_in_loop"


FIRST = """
for real in data:
    fake = gen(torch.randn(5, 4))
    opt_g.zero_grad()
    loss_g = -critic(fake).mean()
    loss_g.backward()
    opt_g.step()
    opt_d.zero_grad()
    loss_d = critic(fake).mean() - critic(real).mean()
    loss_d.backward()
    opt_d.step()
"""

IN_FUNCTION = (
    "def step(real):"
    + FIRST.partition(":")[2]
    .replace(
        "critic(fake).mean() - critic(real).mean()",
        "critic(torch.cat((real, fake))).mean()",
    )
    .replace("opt_g.zero_grad()", "gen.zero_grad()")
    + "for real in data:\n    step(real)\n"
)


@pytest.mark.parametrize("layers", ["", "nn.Linear(4, 3)"])
@pytest.mark.parametrize(
    ("program", "line"),
    [
        (FIRST, "loss_d = critic(fake.detach()).mean() - critic(real).mean()"),
        (IN_FUNCTION, "loss_d = critic(torch.cat((real, fake.detach()))).mean()"),
    ],
)
def test_the_second_loss_gets_the_value_of_who_has_been_stepped(
    program: str, line: str, layers: str
) -> None:
    """Whether or not that step spoils what the graph had saved."""
    gen = "nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))"
    cells = (NETWORKS.replace(gen, layers or gen), program)
    found = explained(cells)
    assert found.rewrites[0].fix == "detach_second"
    cause = found.finding.place(What.CAUSE)
    assert cause is not None and cause.source == line.replace(".detach()", "")
    repaired = edited(cells, found.rewrites[0])
    assert added(cells, repaired) == [line]
    assert play(repaired, watched=True).diagnosis is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    opt_d.step()\n", "    opt_d.step(); opt_g.step()\n"),
        ("    opt_d.step()\n", "    both.step()\n"),
        ("    opt_d.step()\n", ""),
        ("    opt_g.zero_grad()\n", ""),
        ("    opt_g.step()\n", ""),
    ],
)
def test_not_where_the_second_loss_may_train_it_too(old: str, new: str) -> None:
    """By a later step, or by a gradient that is still there when the next round adds to it."""
    both = "both = torch.optim.SGD([*gen.parameters(), *critic.parameters()], 0.1)\n"
    found = play((NETWORKS + both, FIRST.replace(old, new))).diagnosis
    assert found is not None and found.finding.cause == "second_backward"
    assert found.rewrites and "detach_second" not in proposed(found)


ONE_PASS = """
for real in data:
    fake = gen(torch.randn(5, 4))
    score = critic(fake)
    loss_g = -score.mean()
    loss_d = score.mean() - critic(real).mean()
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
    opt_d.zero_grad()
    loss_d.backward()
    opt_d.step()
"""

ENGINE = "class Engine:\n    def backward(self, loss):\n        loss.backward()\n"
BY_ENGINE = "import engines\nengine = engines.Engine()\n" + ONE_PASS.replace(
    "loss_g.backward()", "engine.backward(loss_g)"
).replace("loss_d.backward()", "engine.backward(loss_d)")


@pytest.mark.parametrize("program", [ONE_PASS, BY_ENGINE])
def test_the_second_loss_gets_a_pass_of_its_own_whose_input_is_not_trained(
    tmp_path: Path, program: str
) -> None:
    """The generator, which the first loss trains, lies in front of the one pass."""
    cells = (NETWORKS, program)
    with installed(tmp_path, "engines", ENGINE):
        found = explained(cells)
        repaired = edited(cells, found.rewrites[0])
        assert play(repaired, watched=True).diagnosis is None
    assert found.rewrites[0].fix == "recompute_detached"
    assert found.finding.tensors[0].names[0] == "score"
    assert added(cells, repaired) == ["score = critic(fake.detach())"]


def test_not_where_the_first_loss_reads_the_pass_later() -> None:
    lines = ONE_PASS.splitlines(keepends=True)
    lines[4], lines[5] = lines[5], lines[4]
    found = play((NETWORKS, "".join(lines))).diagnosis
    assert found is not None and "recompute_detached" not in proposed(found)


def test_a_step_on_saved_parameters_rules_out_keeping_the_graph() -> None:
    cells = (NETWORKS, STRAIGHT.replace("opt_d.step()", "opt_d.step(); opt_g.step()"))
    found = play(cells).diagnosis
    assert found is not None and found.finding.variant == "shared_stepped"
    assert "retain_graph" not in proposed(found) and "detach_first" not in proposed(found)


def test_a_step_on_parameters_that_nothing_saved_does_not() -> None:
    """The weight of a layer whose input needs no gradient is not needed by its backward."""
    layers = "nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))"
    stepped = STRAIGHT.replace("opt_d.step()", "opt_d.step(); opt_g.step()")
    cells = (NETWORKS.replace(layers, "nn.Linear(4, 3)"), stepped)
    found = play(cells)
    assert found.diagnosis is not None and found.diagnosis.finding.variant == "shared"
    assert "would not help" not in " ".join(found.output.split())
    kept = edited(cells, next(r for r in found.diagnosis.rewrites if r.fix == "retain_graph"))
    assert play(kept).diagnosis is None


def test_a_value_of_an_earlier_round_is_still_carried() -> None:
    program = """
hidden = torch.zeros(5, 3)
for real in data:
    hidden = gen[2](torch.tanh(gen[0](torch.cat((hidden, real[:, :1]), 1))))
    loss = critic(hidden).mean()
    loss.backward()
"""
    found = explained((NETWORKS, program))
    assert found.finding.variant == "carried"
    assert proposed(found)[0] == "detach_state"


@pytest.mark.parametrize(
    ("kept", "read"),
    [
        ("memory = [(0, torch.zeros(5, 3))]", "memory[0][1]"),
        ("memory = (torch.zeros(5, 3), 0)", "memory[0]"),
    ],
)
def test_no_item_of_a_tuple_is_assigned(kept: str, read: str) -> None:
    store = "memory[0] = (1, hidden)" if "[(" in kept else "memory = (hidden, 1)"
    program = f"""
{kept}
for real in data:
    hidden = torch.tanh(critic[0](real)[:, :3] + {read} * critic[0].bias[:3])
    loss = hidden.mean()
    loss.backward()
    {store}
"""
    cells = (NETWORKS, program)
    found = explained(cells)
    assert found.finding.cause == "second_backward"
    assert found.rewrites
    for rewrite in found.rewrites:
        assert play(edited(cells, rewrite)).diagnosis is None


ACTOR_CRITIC = """
import torch
from torch import nn
torch.manual_seed(0)
actor, critic = nn.Linear(4, 3), nn.Linear(4, 1)
states, picked, returns = torch.randn(6, 4), torch.tensor([0, 2, 1, 1, 0, 2]), torch.randn(6)
"""
ADVANTAGE = """
values = critic(states).squeeze(1)
advantages = returns - values
chances = actor(states).log_softmax(1)
policy_loss = -((advantages - advantages.mean()) * chances[range(6), picked]).mean()
value_loss = advantages.square().mean()
"""
ENTROPY = """
chances = actor(states).log_softmax(1)
policy_loss = -(returns * chances[range(6), picked]).mean()
entropy_loss = (chances * chances.exp()).sum(1).mean()
"""


@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.parametrize("losses", [("policy_loss", "value_loss"), ("value_loss", "policy_loss")])
def test_the_weight_of_a_log_probability_is_detached(
    losses: tuple[str, str], watched: bool
) -> None:
    """Whichever backward comes first; that the program as written agrees says nothing."""
    last = "\n".join(f"{loss}.backward()" for loss in losses)
    cells = (ACTOR_CRITIC, ADVANTAGE + last)
    found = play(cells, watched=watched).diagnosis
    assert found is not None and found.finding.cause == "second_backward"
    assert found.rewrites[0].fix == "detach_weight"
    assert not any(r.outcome is Outcome.VERIFIED for r in found.rewrites)
    (line,) = added(cells, edited(cells, found.rewrites[0]))
    assert line.count(".detach()") == 2


def test_what_does_not_weigh_it_keeps_the_graph() -> None:
    cells = (ACTOR_CRITIC, ENTROPY + "policy_loss.backward()\nentropy_loss.backward()")
    found = play(cells).diagnosis
    assert found is not None and proposed(found)[0] == "retain_graph"
