"""A loss whose graph stops where recording was off: found beside a stop-gradient of another
optimizer's loss, and recorded again."""

from __future__ import annotations

from pathlib import Path

import pytest
from knowledge.played import edited, play
from knowledge.test_cases import run
from knowledge.test_partial_cuts import played
from notebook import installed

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


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("function", "line"), [(DECORATED, 1), (BLOCK, 2)])
def test_the_switch_goes_that_the_loss_of_the_lacking_optimizer_met(
    function: str, line: int
) -> None:
    found = played((MODELS, function, STEPS)).diagnosis
    assert found is not None and found.finding.cause == "silent_cut"
    causes = [e.place for e in found.finding.events if e.what is What.CAUSE]
    assert [(p.cell, p.line) for p in causes if p is not None] == [(2, line)]
    assert "no_grad" not in edited((MODELS, function, STEPS), found.rewrites[0])[1]


LIBRARY = """import torch

class Critic(torch.nn.Module):
    def __init__(self, body, shared=False, sure=False):
        super().__init__()
        self.body, self.value, self.shared = body, torch.nn.Linear(3, 1), shared
        self.sure = sure

    def forward(self, x):
        with torch.set_grad_enabled(not (self.shared or self.sure)):
            h = self.body(x)
        return self.value(h)

    def second(self, x):
        if not self.sure:
            return self.value(self.quiet(x))
        return self.forward(x)

    @torch.no_grad()
    def quiet(self, x):
        return self.body(x)

class Two:
    def __init__(self, body, **options):
        self.critic = Critic(body, **options)
"""
SHARED = """import torch, somelib
from torch import nn
torch.manual_seed(0)
class Body(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(2, 3)
    def forward(self, x):
        return self.net(x)
body = Body()
critic = somelib.Two(body, @).critic
opt, x = torch.optim.SGD(critic.parameters(), lr=0.1), torch.randn(5, 2)
"""
TRAINED = """for _ in range(2):
    opt.zero_grad()
    critic(x).mean().backward()
    opt.step()
"""


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("option", "call", "inside", "turned"),
    [
        ("shared=True", "critic(x)", "with torch.set_grad_enabled(", True),
        ("sure=False", "critic.second(x)", "@torch.no_grad()", False),
    ],
)
def test_a_library_turns_recording_off_for_a_part(
    tmp_path: Path, option: str, call: str, inside: str, turned: bool
) -> None:
    cells = (SHARED.replace("@", option), TRAINED.replace("critic(x)", call))
    with installed(tmp_path, "somelib", LIBRARY):
        found = played(cells)
    assert found.diagnosis is not None, found.output
    finding = found.diagnosis.finding
    assert (finding.cause, finding.variant) == ("silent_cut", "off_in_library"), found.output
    assert finding.facts["operation"] == call and finding.facts["inside"].startswith(inside)
    assert "body" in finding.tensors[0].names
    new = [edited(cells, r)[0] for r in found.diagnosis.rewrites]
    assert new == ([SHARED.replace("@", "shared=False")] if turned else [])


def test_a_loss_from_outside_is_not_put_down_to_the_decorator() -> None:
    cells = (
        "import torch\nnet = torch.nn.Linear(3, 1)\n@torch.no_grad()\n"
        "def descend(loss, values):\n    loss.backward()\n",
        "values = {k: v.detach().clone() for k, v in net.named_parameters()}\n"
        "loss = torch.func.functional_call(net, values, (torch.rand(2, 3),)).mean()\n"
        "descend(loss, values)\n",
    )
    found = play(cells).diagnosis
    assert found is not None and found.finding.cause == "graph_cut"


@pytest.mark.parametrize("records", [False, True])
def test_a_library_decides_by_an_option_whether_code_of_the_users_is_recorded(
    tmp_path: Path, records: bool
) -> None:
    library = (
        "import torch\nclass Meter:\n    records = False\n"
        "    def run(self, x):\n        with torch.set_grad_enabled(self.records):\n"
        "            self.update(x)\n"
    )
    cells = (
        "import torch, meters\nnet = torch.nn.Linear(2, 1)\nclass Slope(meters.Meter):\n"
        f"    records = {records}\n    def update(self, points):\n"
        "        x = points.clone().requires_grad_()\n        u = net(x).square()\n"
        "        (du,) = torch.autograd.grad(u.sum(), x, create_graph=True)\n"
        "        self.slope = torch.autograd.grad(du.sum(), x)[0].norm()\n",
        "meter = Slope()\nmeter.run(torch.rand(4, 2))\n",
    )
    with installed(tmp_path, "meters", library):
        found = play(cells).diagnosis
        assert (found is None) is records
        if found is not None:
            assert (found.finding.cause, found.finding.variant) == ("grad_mode_off", "library")
            new = edited(cells, found.rewrites[0])
            run(new)
            assert "x.requires_grad_()" not in new[0]
