"""Tensors that reach NumPy in other ways than by their name: each program and its first rewrite."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from knowledge.played import Played, edited, play
from knowledge.test_cases import run
from notebook import installed

from autograd_explain.model import Confidence

START = """import numpy as np
import torch
from torch import nn
net = nn.Linear(3, 3)
x = torch.randn(4, 3)
"""
FIT = """class Fit:
    def __init__(self):
        self.a = torch.tensor(1.0, requires_grad=True)
        self.b = torch.ones((), requires_grad=True)
    @property
    def pair(self):
        return self.a, self.b
    @property
    def powers(self):
        return [getattr(self, name) for name in ("a", "b")]
    def bent(self):
        return [t * torch.ones(2) for t in self.pair]
fit = Fit()
"""
#: What was given to NumPy, the line that fails, and what the first rewrite makes of it.
SHAPES = {
    "a list that a property builds": (
        FIT,
        "y = np.polyval(fit.powers, np.arange(3.0))",
        "y = np.polyval([value.item() for value in fit.powers], np.arange(3.0))",
    ),
    "a starred property": (
        FIT,
        "y = np.linspace(*fit.pair, 5)",
        "y = np.linspace(*[value.item() for value in fit.pair], 5)",
    ),
    "a list that a method returns": (
        FIT,
        "y = np.stack(fit.bent())",
        "y = np.stack([value.detach() for value in fit.bent()])",
    ),
    "two arguments": (
        "out = net(x)",
        "y = np.dot(out, out[0])",
        "y = np.dot(out.detach().numpy(), out[0].detach().numpy())",
    ),
    "the other argument was detached": (
        "out = net(x)",
        "y = np.dot(out.detach().numpy(), out.T)",
        "y = np.dot(out.detach().numpy(), out.T.detach().numpy())",
    ),
    "a keyword of a function written in Python": (
        "w = torch.rand(3, requires_grad=True)",
        "y = np.average(np.arange(3.0), weights=w.softmax(0))",
        "y = np.average(np.arange(3.0), weights=w.softmax(0).detach().numpy())",
    ),
    "elements of a display": (
        "",
        "y = np.array([0.5, net.weight.norm(), net.bias.sum()])",
        "y = np.array([0.5, net.weight.norm().item(), net.bias.sum().item()])",
    ),
    "a comprehension": (
        "",
        "y = np.array([net(row).sum() for row in x])",
        "y = np.array([net(row).sum().item() for row in x])",
    ),
    "a comprehension beside another call of NumPy's": (
        "ns, losses = zip(*[(2, net(row).sum()) for row in x])",
        "y = np.sum([n * l for n, l in zip(ns, losses)]) / np.sum(ns)",
        "y = np.sum([(n * l).item() for n, l in zip(ns, losses)]) / np.sum(ns)",
    ),
    "a comprehension given by keyword": (
        "pairs = [(1.0, net(row).sum()) for row in x]",
        "y = np.average(weights=[k for k, _ in pairs], a=[v for _, v in pairs])",
        "y = np.average(weights=[k for k, _ in pairs], a=[v.item() for _, v in pairs])",
    ),
    "a comprehension of rows": (
        "pairs = [(1.0, net(row)) for row in x]",
        "y = np.sum([k * v for k, v in pairs], axis=0) / np.sum([2, 2])",
        "y = np.sum([(k * v).detach() for k, v in pairs], axis=0) / np.sum([2, 2])",
    ),
    "a list that is also trained on": (
        "losses = [net(x).sum()]\nsum(losses).backward()",
        "y = np.median(losses)",
        "y = np.median([value.item() for value in losses])",
    ),
    "values of a mapping": (
        "out = {'a': net(x)}\nfor value in out.values():\n    value.sum().backward()",
        "y = np.stack(list(out.values()))",
        "y = np.stack([value.detach() for value in out.values()])",
    ),
    "a mapping of numbers only": (
        "out = {}\nout['a'] = net(x).sum()",
        "y = np.max(list(out.values()))",
        "out['a'] = net(x).sum().item()",
    ),
    "the same tensor in the next line": (
        "out = net(x)",
        "y = np.argmax(out, axis=1)\nz = np.max(out, axis=1)",
        "z = np.max(out.detach().numpy(), axis=1)",
    ),
    "a function called by NumPy": (
        "def response(v):\n    return net(v * torch.ones(3)).sum()",
        "y = np.vectorize(response)(np.arange(3.0))",
        "    return net(v * torch.ones(3)).sum().item()",
    ),
    "a function that torch calls, too": (
        "def response(v):\n    return net(v * torch.ones(3)).sum()\nresponse(1.0).backward()",
        "y = np.vectorize(response)(np.arange(3.0))",
        "y = np.vectorize(lambda *args: response(*args).item())(np.arange(3.0))",
    ),
}


@pytest.mark.parametrize("name", SHAPES)
def test_the_first_rewrite_takes_the_tensors_out_of_the_graph(name: str) -> None:
    before, failing, repaired = SHAPES[name]
    cells = (START + before, failing)
    new = _first_rewrite(cells, play(cells))
    assert repaired in "\n".join(new).splitlines()
    run(new)


BUFFER = """class Buffer:
    def __init__(self):
        self.kept = []
    def store(self, values, done):
        values = values.clone().numpy()
        self.kept.append((values, done))
"""


def test_a_library_that_makes_the_array_itself_is_given_a_tensor_without_graph(
    tmp_path: Path,
) -> None:
    with installed(tmp_path, "somebuffer", BUFFER):
        cells = (
            START + "from somebuffer import Buffer\nbuffer = Buffer()",
            "out = net(x)\nbuffer.store(out[:, 0], torch.zeros(4))",
        )
        found = play(cells)
        new = _first_rewrite(cells, found)
        assert new[-1].splitlines()[-1] == "buffer.store(out[:, 0].detach(), torch.zeros(4))"
        assert found.diagnosis is not None
        assert found.diagnosis.finding.confidence is Confidence.LIKELY
        run(new)


RECORDS = """class Buffer:
    def __init__(self):
        self.rows = []
    def store(self, action, value, score, weight):
        value = value.reshape(-1, 1)
        self.rows.append((value.clone().cpu().numpy(), action))
        self.rows.append((score.numpy(), weight))
"""


def test_of_two_tensors_those_are_blamed_that_the_library_makes_arrays_of(tmp_path: Path) -> None:
    """Neither what is an array by then, nor what may keep its graph."""
    with installed(tmp_path, "somerecords", RECORDS):
        cells = (
            START + "from somerecords import Buffer\nbuffer = Buffer()",
            "out = net(x)\nvalue, score, weight = out[:, 0:1], out[:, 1], out[:, 0]\n"
            "action = torch.ones(4)\nbuffer.store(action.numpy(), value, score, weight)",
        )
        found = play(cells)
        assert found.diagnosis is not None
        names = [name for t in found.diagnosis.finding.tensors for name in t.names]
        assert names[0] == "value" and "action" not in names
        new = _first_rewrite(cells, found)
        written = "buffer.store(action.numpy(), value.detach(), score.detach(), weight)"
        assert new[-1].splitlines()[-1] == written
        run(new)


def test_the_next_call_keeps_the_graphs_that_the_library_keeps(tmp_path: Path) -> None:
    with installed(tmp_path, "somerecords", RECORDS):
        cells = (
            START + "from somerecords import Buffer\nbuffer = Buffer()",
            "out = net(x)\nvalue, score, weight = out[:, 0:1], out[:, 1], out[:, 0]\n"
            "buffer.store(0, value, score.detach(), weight=weight)\n"
            "buffer.store(1, value, score.detach(), weight=weight)",
        )
        new = _first_rewrite(cells, play(cells))
        assert new[-1].splitlines()[-2:] == [
            "buffer.store(0, value.detach(), score.detach(), weight=weight)",
            "buffer.store(1, value.detach(), score.detach(), weight=weight)",
        ]
        run(new)


VECTOR = """import numpy as np
class Wrapper:
    def __init__(self, env):
        self.env = env
    def step(self):
        return self.observation(self.env.step())
class Vector:
    def __init__(self, envs):
        self.envs, self.kept = envs, np.zeros((2, 3), dtype=np.float32)
    def learn(self):
        for i, env in enumerate(self.envs):
            self.kept[i] = env.step()
        return self.kept
"""
WRAPPED = """from somevector import Vector, Wrapper
class Env:
    def step(self):
        return torch.ones(3)
class Encoded(Wrapper):
    def observation(self, raw):
        code = net(raw.unsqueeze(0))
        return code.squeeze(0)
class Head(nn.Module):
    def forward(self, x):
        return net(x).squeeze(0)
"""


def test_what_a_method_hands_back_to_a_library(tmp_path: Path) -> None:
    """The one that ends with the operation that made the tensor; no module's."""
    with installed(tmp_path, "somevector", VECTOR):
        cells = (START + WRAPPED, "kept = Vector([Encoded(Env()), Encoded(Env())]).learn()")
        found = play(cells)
        new = _first_rewrite(cells, found)
        assert "        return code.squeeze(0).detach()" in new[0].splitlines()
        assert found.diagnosis is not None
        assert found.diagnosis.finding.confidence is Confidence.LIKELY
        run(new)
        other = (
            "class Shown(Wrapper):\n    def observation(self, x):\n        return x.squeeze(0)\n"
        )
        several = play((START + WRAPPED + other, cells[1])).diagnosis
    assert several is None or several.finding.cause == "unknown"


ASKED = """from somevector import Vector, Wrapper
class Reach(Wrapper):
    def code(self):
        return net(torch.ones(3)) + 1
    def reset(self):
        return self.code()
    def step(self):
        return self.code()
    def shown(self):
        return @
reach = Reach(None)
reach.shown()
reach.step()
"""


def test_what_a_method_that_the_program_calls_too_hands_back(tmp_path: Path) -> None:
    """The library's source says which it asked for: no other method is blamed."""
    with installed(tmp_path, "somevector", VECTOR):
        shown = ASKED.replace("@", "self.code()")
        cells = (START + shown, "kept = Vector([reach, reach]).learn()")
        lines = _first_rewrite(cells, play(cells))[0].splitlines()
        assert [line for line in lines if "return self.code()" in line] == [
            "        return self.code()",
            "        return self.code().detach()",
            "        return self.code()",
        ]
        cut = shown.replace(
            "def step(self):\n        return self.code()", "def step(self):\n        return W"
        )
        handed = "import torch\nW = torch.ones(3, requires_grad=True)\n"
        told = play((START + handed + cut, cells[1])).diagnosis
    assert told is None or "self.code()" not in told.finding.tensors[0].names


CARRIED = """from somevector import Vector, Wrapper
class Dream(Wrapper):
    def reset(self):
        self.state = torch.ones(3)
        return self.state
    def step(self):
        self.state = 0.5 * self.state + net(self.state)
        return self.state
dream = Dream(None)
dream.reset()
fit = torch.optim.SGD(net.parameters(), lr=0.1)
fit.step()
"""


def test_what_a_method_hands_back_of_its_object(tmp_path: Path) -> None:
    """The attribute is the tensor: of the two methods that return it, the one that computes it."""
    with installed(tmp_path, "somevector", VECTOR):
        cells = (START + CARRIED, "kept = Vector([dream, dream]).learn()")
        found = play(cells)
        new = _first_rewrite(cells, found)
        returned = [line for line in new[0].splitlines() if "return self.state" in line]
        assert returned == ["        return self.state", "        return self.state.detach()"]
        run(new)


BEHIND = """class Buffer:
    def store(self, values, done):
        return self.array(values), done
    def array(self, values):
        return values.numpy()
"""


def test_of_two_tensors_none_is_blamed_where_the_array_is_made_further_inside(
    tmp_path: Path,
) -> None:
    with installed(tmp_path, "somebehind", BEHIND):
        cells = (
            START + "from somebehind import Buffer\nbuffer = Buffer()",
            "out = net(x)\nbuffer.store(out[:, 0], out[:, 1])",
        )
        found = play(cells).diagnosis
    assert found is None or found.finding.cause == "unknown"


KEEPS = """class Buffer:
    def __init__(self):
        self.rows = []
    def add(self, done, value, score):
        self.rows.append(value.clone().numpy())
        self.rows.append(score.clone().numpy())
    def finish(self, last, shown=None):
        self.last = last.clone().cpu().numpy().ravel()
        self.shown = shown.numpy() if hasattr(shown, "numpy") else shown
"""
COLLECT = """def collect(buffer):
    for _ in range(2):
        value, score = net(x), net(x + 1)
        buffer.add(False, value, score)
    @
    buffer.finish(last, shown)
collect(Buffer())"""


@pytest.mark.parametrize(
    ("made", "finished"),
    [
        ("last = shown = net.forward(x)", "buffer.finish(last.detach(), shown)"),
        ("with torch.no_grad():\n        last = shown = net(x)", "buffer.finish(last, shown)"),
    ],
)
def test_what_another_method_of_the_library_would_fail_with(
    tmp_path: Path, made: str, finished: str
) -> None:
    with installed(tmp_path, "somekeeper", KEEPS):
        cells = (START + "from somekeeper import Buffer", COLLECT.replace("@", made))
        new = _first_rewrite(cells, play(cells))[1]
    assert "buffer.add(False, value.detach(), score.detach())" in new and finished in new


def test_numbers_among_the_tensors_leave_no_one_way() -> None:
    found = play((START + "values = [0.5, net(x).sum()]\nprint(values[1] * 2)", "np.sum(values)"))
    assert found.diagnosis is not None
    assert found.diagnosis.finding.cause == "numpy_needs_detach"
    assert not found.diagnosis.rewrites


def test_numbers_that_a_comprehension_mixes_in_leave_no_one_way() -> None:
    made = "np.sum([k * net.weight.sum() if k else 0.0 for k in range(3)]) / np.sum([2, 3])"
    found = play((START, made))
    assert found.diagnosis is not None
    assert found.diagnosis.finding.cause == "numpy_needs_detach"
    assert not found.diagnosis.rewrites


def test_a_reduction_that_keeps_the_graph_is_left_alone() -> None:
    """`np.mean(out)` calls `out.mean()`: with an array instead there would be nothing to train."""
    cells = (START + "out = net(x)", "y = np.argmax(out, axis=1)\nnp.mean(out).backward()")
    assert "np.mean(out).backward()" in _first_rewrite(cells, play(cells))[1]


def test_a_library_in_between(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plotting library passes its arguments on: its first frame still has them."""
    package = tmp_path / "site-packages"
    package.mkdir()
    (package / "drawn.py").write_text(
        "import numpy as np\n"
        "class Axes:\n"
        "    def plot(self, *args, color=None, **rest):\n"
        "        return [np.asarray(a, dtype=float) for a in args]\n"
    )
    monkeypatch.setattr(sys, "path", [str(package), *sys.path])
    cells = (
        START + FIT + "from drawn import Axes\nax = Axes()",
        "ax.plot(range(2), fit.powers, color='k')",
    )
    new = _first_rewrite(cells, play(cells))
    assert new[1] == "ax.plot(range(2), [value.item() for value in fit.powers], color='k')"


def _first_rewrite(cells: tuple[str, ...], found: Played) -> tuple[str, ...]:
    assert found.diagnosis is not None
    assert found.diagnosis.finding.cause == "numpy_needs_detach"
    return edited(cells, found.diagnosis.rewrites[0])


CONVERTS = """import numpy as np
import torch

class Policy:
    def __init__(self):
        self.value = torch.nn.Linear(3, 1)
    def obs_to_tensor(self, obs):
        array = np.array(obs)
        return torch.as_tensor(array), True
    def score(self, obs):
        return torch.as_tensor(np.array(obs)).mean()

def as_tensor(values):
    return torch.as_tensor(np.array(values))
"""
ATTACK = """def attack(obs):
    adv = obs.clone().requires_grad_()
    @
    policy.value(batch).sum().backward()
    return adv.grad
print(attack(x))"""


@pytest.mark.parametrize(
    ("converted", "handed_on"),
    [
        ("batch, _ = policy.obs_to_tensor(adv)", "batch = adv"),
        ("batch = policy.obs_to_tensor(adv)[0]", "batch = adv"),
        ("batch = as_tensor(adv * 2).float()", "batch = (adv * 2).float()"),
        ("_, batch = 0, as_tensor(values=adv)", "_, batch = 0, adv"),
    ],
)
def test_a_conversion_of_a_tensor_that_is_differentiated_is_left_out(
    tmp_path: Path, converted: str, handed_on: str
) -> None:
    with installed(tmp_path, "somepolicy", CONVERTS):
        cells = (
            START + "from somepolicy import Policy, as_tensor\npolicy = Policy()",
            ATTACK.replace("@", converted),
        )
        found = play(cells)
        new = _first_rewrite(cells, found)
        assert new[-1] == ATTACK.replace("@", handed_on)
        run(new)


@pytest.mark.parametrize(
    "converted",
    [
        "batch = policy.score(adv).expand(3)",  # computes something else
        "batch, flag = policy.obs_to_tensor(adv)\n    print(flag)",
    ],
)
def test_what_may_compute_something_is_not_left_out(tmp_path: Path, converted: str) -> None:
    with installed(tmp_path, "somepolicy", CONVERTS):
        cells = (
            START + "from somepolicy import Policy, as_tensor\npolicy = Policy()",
            ATTACK.replace("@", converted),
        )
        found = play(cells).diagnosis
    assert found is not None and all(r.fix != "itself" for r in found.rewrites)
