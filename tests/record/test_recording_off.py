"""Whose word it was that turned recording off: the program's, or a library's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from notebook import installed
from watching import signals

LIBRARY = """\
import torch

class Critic(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.features, self.value = features, torch.nn.Linear(3, 1)

    def forward(self, x):
        with torch.no_grad():
            h = self.features(x)
        return self.value(h)

@torch.no_grad()
def rollout(net, x):
    return net(x).numpy()
"""
HEAD = (
    "import torch\nfrom torch import nn\nimport somelib\ntorch.manual_seed(0)\n"
    "class Features(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.net = nn.Linear(2, 3)\n    def forward(self, x):\n        return self.net(x)\n"
    "critic, x = somelib.Critic(Features()), torch.randn(5, 2)\n"
    "opt = torch.optim.SGD(critic.parameters(), lr=0.1)"
)
STEP = "for _ in range(2):\n    opt.zero_grad()\n    {}critic(x).mean().backward()\n    opt.step()"
OWN = (
    "def frozen(x):\n    with torch.no_grad():\n        return critic.features(x)\n"
    "for _ in range(2):\n    opt.zero_grad()\n    critic.value(frozen(x)).mean().backward()\n"
    "    opt.step()"
)


@pytest.fixture(autouse=True)
def library(tmp_path: Path) -> Iterator[None]:
    with installed(tmp_path, "somelib", LIBRARY):
        yield


def test_of_what_a_library_turned_off_the_program_says_nothing() -> None:
    (found,) = signals((HEAD, STEP.format("")))
    assert (found.name, found.evidence["way"]) == ("graph-cut", "no_grad")


def test_a_block_elsewhere_says_nothing_of_it() -> None:
    log = "with torch.no_grad():\n        shown = critic(x)\n    "
    assert len(signals((HEAD, STEP.format(log)))) == 1


@pytest.mark.parametrize("cell", [OWN, "quiet = torch.no_grad\n" + STEP.format("")])
def test_the_program_is_taken_at_its_word(cell: str) -> None:
    assert signals((HEAD, cell)) == []
    assert len(signals((HEAD, cell), sure=False)) == 1


MEMORY = """
class Conv(nn.Module):
    def __init__(self):
        super().__init__()
        self.logits, self.lin, self.weights = nn.Parameter(torch.rand(4)), nn.Linear(3, 4), None
    def forward(self, x):
        if self.weights is None:
            self.weights = torch.softmax(self.logits, 0)
        return self.lin(x) * self.weights
conv = Conv()
opt = torch.optim.SGD(conv.parameters(), lr=0.1)
"""
STEPS = (
    "for _ in range(3):\n    loss = conv(torch.ones(2, 3)).square().mean()\n"
    "    opt.zero_grad()\n    loss.backward()\n    opt.step()"
)


@pytest.mark.parametrize(
    ("first", "alarm"),
    [
        ("with torch.no_grad():\n    conv(torch.zeros(1, 3))", True),
        ("with torch.no_grad():\n    print(conv(torch.zeros(1, 3)))", True),
        # The program itself gives the module a value that it does not train through.
        ("with torch.no_grad():\n    conv.weights = torch.softmax(conv.logits, 0)", False),
    ],
)
def test_what_an_object_keeps_of_a_run_without_recording(first: str, alarm: bool) -> None:
    found = signals((HEAD + MEMORY, first, STEPS))
    assert [s.evidence.get("kept") for s in found] == ([1] if alarm else [])


THROUGH_METHOD = MEMORY.replace("= torch.softmax(self.logits, 0)", "= self.computed()").replace(
    "    def forward",
    "    def computed(self):\n        return torch.softmax(self.logits, 0)\n    def forward",
)
BASELINE = "shown = torch.from_numpy(somelib.rollout(conv, torch.zeros(1, 3)))"


@pytest.mark.parametrize("first", ["with torch.no_grad():\n    conv(torch.zeros(1, 3))", BASELINE])
def test_a_memory_is_filled_by_a_method_that_computes(first: str) -> None:
    (found,) = signals((HEAD + THROUGH_METHOD, first, STEPS))
    assert found.evidence["kept"] == 2 and "turned_off" not in found.evidence


def test_an_array_of_what_was_not_recorded_is_not_the_cut() -> None:
    steps = STEPS.replace("conv(torch.ones(2, 3))", "(conv(torch.ones(2, 3)) - shown.mean())")
    (found,) = signals((HEAD + THROUGH_METHOD, BASELINE, steps))
    assert (found.evidence["way"], found.evidence["kept"]) == ("no_grad", 2)


def test_a_memory_for_runs_without_recording_alone_is_quiet() -> None:
    anew = THROUGH_METHOD.replace("is None:", "is None or torch.is_grad_enabled():")
    assert signals((HEAD + anew, BASELINE, STEPS), sure=False) == []


CLOSURE = (
    "def closure():\n    opt.zero_grad()\n    loss = {}.square().mean()\n    loss.backward()\n"
    "    return loss\nfor _ in range(3):\n    opt.step(closure)"
)


def test_a_step_that_calls_its_loss_shows_a_cut_as_well() -> None:
    (found,) = signals((HEAD, CLOSURE.format("critic(x)")))
    assert (found.name, found.evidence["way"]) == ("graph-cut", "no_grad")
    own = CLOSURE.format("critic.value(frozen(x))")
    assert signals((HEAD, OWN[: OWN.index("for ")] + own)) == []
