"""Overwritten values with the write in a helper, a method, an object: the names, the line, and a
first rewrite whose gradients are those that were meant."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from knowledge.played import edited, play
from knowledge.test_cases import run
from notebook import installed

from autograd_explain.model import Outcome, Role, What

START = """import torch
from torch import nn
torch.manual_seed(0)
w = torch.randn(4, requires_grad=True)
"""
#: What stands before, the failing cell, the tensor's name, the writing line, a line of the rewrite.
PROGRAMS = {
    "rows chosen by a mask, handed back": (
        "def flipped(t):\n    t[t.sum(1) < 0] *= -1\n    return t\n",
        "h = w * torch.eye(4)\ncost = (h * h).sum() + (h ** 3).sum()\n"
        "(cost + flipped(h).sum()).backward()",
        "h", "t[t.sum(1) < 0] *= -1", "    t = t.clone()",
    ),
    "a helper that returns nothing": (
        "def zero_small(t):\n    t[t < 0.5] = 0\n",
        "h = w.exp()\ncost = h.square().sum()\nzero_small(h)\n(cost + h.sum()).backward()",
        "h", "t[t < 0.5] = 0", "h = h.clone()",
    ),
    "a method called under no_grad": (
        "class Best:\n    def update(self, s):\n        s -= s.max()\n        self.best = s.sum()\n"
        "tracker = Best()\n",
        "s = (w * 2).sigmoid()\ncost = s.square().sum()\nwith torch.no_grad():\n"
        "    tracker.update(s)\ncost.backward()",
        "s", "s -= s.max()", "s = s.clone()\nwith torch.no_grad():",
    ),
    "out= under no_grad": (
        "",
        "a = torch.sigmoid(w)\ncost = (a * 3).sum()\nwith torch.no_grad():\n"
        "    torch.clamp(a, 0.4, 0.6, out=a)\n(cost + a.sum()).backward()",
        "a", "torch.clamp(a, 0.4, 0.6, out=a)", "a = a.clone()\nwith torch.no_grad():",
    ),
    "an item of a list": (
        "",
        "xs = [w.exp(), w.sin()]\ncost = xs[0].square().sum() + (xs[0] * w).sum()\n"
        "xs[0] += xs[1]\n(cost + xs[0].sum()).backward()",
        "xs[0]", "xs[0] += xs[1]", "xs[0] = xs[0] + xs[1]",
    ),
    "items in a loop over positions": (
        "def unit(rows):\n    for i in range(len(rows)):\n        rows[i] /= rows[i].norm()\n"
        "    return rows\n",
        "rows = [w.exp(), w.exp() * 2]\ncost = sum((r * r).sum() for r in rows)\n"
        "(cost + unit(rows)[0][0]).backward()",
        "rows[i]", "rows[i] /= rows[i].norm()", "        rows[i] = rows[i] / rows[i].norm()",
    ),
    "a part of what several operations saved": (
        "class Env:\n    def clip(self, obs):\n        obs[:2] *= 0.1\n        return obs\n"
        "env = Env()\n",
        "h = w + 1\ncost = (h * h).sum()\ncost = cost + (h ** 3).sum()\n"
        "(cost + env.clip(h).sum()).backward()",
        "h", "obs[:2] *= 0.1", "        obs = obs.clone()",
    ),
    "two fields written in turns": (
        "from dataclasses import dataclass\n@dataclass\nclass State:\n    pos: torch.Tensor\n"
        "    vel: torch.Tensor\n    def kick(self, force):\n        self.vel += 0.1 * force\n"
        "        self.pos += 0.1 * self.vel\n",
        "s = State(torch.ones(4), torch.zeros(4))\nenergy = 0\nfor _ in range(3):\n"
        "    s.kick(-w * s.pos)\n    energy = energy + s.vel.square().sum()\nenergy.backward()",
        "s.pos", "self.pos += 0.1 * self.vel",
        "        self.vel = self.vel + 0.1 * force\n        self.pos = self.pos + 0.1 * self.vel",
    ),
    "buffers taken from a list in turns": (
        "def react(u, a, n):\n    bufs = [u.clone(), torch.empty_like(u)]\n    for k in range(n):\n"
        "        src, dst = bufs[k % 2], bufs[(k + 1) % 2]\n"
        "        dst.copy_(src + a * src * (1 - src))\n    return bufs[n % 2]\n",
        "u = react(torch.rand(4), w, 4)\nu.sum().backward()",
        "u", "dst.copy_(src + a * src * (1 - src))",
        "        dst.copy_(src.clone() + a * src.clone() * (1 - src.clone()))",
    ),
    "two buffers handed to a function": (
        "def advance(cur, nxt, r):\n    nxt[1:-1] = cur[1:-1] + r * cur[:-2] * cur[2:]\n"
        "def simulate(u, r):\n    a, b = u.clone(), u.clone()\n    for _ in range(4):\n"
        "        advance(a, b, r)\n        a, b = b, a\n    return a\n",
        "u = simulate(torch.rand(6), w)\nu.sum().backward()",
        "u", "nxt[1:-1] = cur[1:-1] + r * cur[:-2] * cur[2:]",
        "        b = b.clone()\n        advance(a, b, r)",
    ),
    "an attribute under a local name": (
        "class Cell:\n    def __init__(self):\n        self.state = torch.zeros(4)\n"
        "    def step(self, x):\n        s = self.state\n        s.mul_(0.5).add_(x)\n"
        "        return s.square().sum()\n",
        "cell = Cell()\ncost = sum(cell.step(w * k) for k in range(3))\ncost.backward()",
        "s", "s.mul_(0.5).add_(x)",
        "        s = s.mul(0.5).add(x)\n        self.state = s",
    ),
}  # fmt: skip


@pytest.mark.parametrize("watched", [False, True], ids=["afterwards", "watched"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str, watched: bool) -> None:
    before, failing, tensor, line, wanted = PROGRAMS[name]
    cells = (START + before, failing)
    found = play(cells, watched=watched).diagnosis
    assert found is not None and found.finding.cause == "saved_value_overwritten"
    culprit, changed = found.finding.tensor(Role.CULPRIT), found.finding.event(What.CHANGED)
    assert culprit is not None and tensor in culprit.names
    assert changed is not None and changed.place is not None and changed.place.source == line
    new = edited(cells, found.rewrites[0])
    assert wanted in "\n".join(new)
    torch.testing.assert_close(run(new)["w"].grad, _meant(cells))


@pytest.mark.parametrize(
    ("kept", "stored"),
    [
        ("{'a': torch.zeros(4)}, 'a'", True),
        ("[torch.zeros(4)], 0", True),
        ("(torch.zeros(4),), 0", False),
        ("torch.zeros(2, 4), 0", False),
    ],
)
def test_a_container_gets_the_new_value_of_what_is_taken_from_it(kept: str, stored: bool) -> None:
    cells = (
        START + "def moved(p, held, k):\n    v = held[k]\n    v.mul_(0.5).add_(p.cos())\n"
        "    return p - w * v\n",
        f"p, held, k = torch.ones(4), {kept}\nfor _ in range(2):\n    p = moved(p, held, k)\n"
        "p.sum().backward()",
    )
    found = play(cells, watched=False).diagnosis
    assert found is not None and found.finding.cause == "saved_value_overwritten"
    new = edited(cells, found.rewrites[0])
    assert ("    held[k] = v" in new[0]) is stored
    if stored:
        torch.testing.assert_close(run(new)["w"].grad, _meant(cells))


def _meant(cells: tuple[str, ...]) -> torch.Tensor:
    """The gradient of the program as written, with a copy of everything that backward needs.

    Not allow_mutation_on_saved_tensors: a write through another view passes it (torch 2.13).
    """
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t):
        gradient: torch.Tensor = run(cells)["w"].grad
        return gradient


RISEN = """h = w.square()
h.sum().backward(retain_graph=True)
with torch.no_grad():
    w.add_(w.grad)
"""


@pytest.mark.parametrize("behind", ["cost = h.sum()", ""])
def test_a_step_by_hand_waits_for_a_loss_that_does_not_read_what_it_writes(behind: str) -> None:
    loss = "cost" if behind else "h.sum()"
    cells = (START, f"{RISEN}{behind}\n{loss}.backward()".replace("\n\n", "\n"))
    found = play(cells).diagnosis
    assert found is not None and found.finding.cause == "saved_value_overwritten"
    assert found.rewrites[0].fix == "move_write"
    wanted = f"{loss}.backward()\nwith torch.no_grad():\n    w.add_(w.grad)"
    assert wanted in edited(cells, found.rewrites[0])[1]


FOLLOWING = """def made():
    return nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 4))
net, target, head = made(), made(), nn.Linear(4, 4)
opt = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.1)
x = torch.randn(5, 4)
def loss_of(x):
    z = {z}
    loss = (net(x) - z).square().mean()
    with torch.no_grad():
        for p, t in zip(net.parameters(), target.parameters()):
            t.lerp_(p, 0.1)
    return loss
"""


@pytest.mark.parametrize(
    ("z", "wanted"),
    [
        ("target(x).tanh()", "    z = target(x).detach().tanh()"),
        ("target(head(x))", ""),  # the head learns through the target
        ("target(x * w)", ""),  # and so may who gave the input
    ],
)
def test_what_a_network_that_follows_another_computes_is_detached(z: str, wanted: str) -> None:
    cells = (START + FOLLOWING.format(z=z), "loss_of(x).backward()\nopt.step()")
    found = play(cells).diagnosis
    assert found is not None and found.finding.cause == "saved_value_overwritten"
    assert (found.rewrites[0].fix == "detach_untrained") is bool(wanted)
    assert wanted in edited(cells, found.rewrites[0])[0].splitlines() or not wanted


LEAK = """class Head(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = nn.Parameter(torch.full((4,), scale))
    def {name}(self, h):
        h += self.scale
        return {result}
heads = [Head(1.0), Head(2.0)]
"""


@pytest.mark.parametrize(
    ("name", "result"), [("forward", "h.square().sum()"), ("score", "(h * h).sum() * h[0]")]
)
def test_a_write_felt_in_the_next_call_is_corrected_not_kept(name: str, result: str) -> None:
    """A copy for each saver would agree with the program as written, in which the second call
    gets what the first has added."""
    call = "head(h)" if name == "forward" else f"head.{name}(h)"
    cells = (
        START + "h = w * 2",
        LEAK.format(name=name, result=result),
        f"total = sum({call} for head in heads)\ntotal.backward()",
    )
    found = play(cells, watched=True, verify=True)
    assert found.diagnosis is not None, found.output
    first = found.diagnosis.rewrites[0]
    assert first.outcome is Outcome.DIFFERS and first.reason.key == "differs_for_caller"
    assert "h = h + self.scale" in edited(cells, first)[1]
    run(edited(cells, first))


HELD = """from types import SimpleNamespace
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(2))
    def forward(self, data):
        h = data.x
        strength = data.strength
        for layer in self.layers:
            h = layer(h).tanh() * strength
            strength *= 0.6
        return h
data = SimpleNamespace(x=torch.rand(3, 4), strength=torch.rand(3, 1))
net = Net()
"""


def test_what_an_argument_holds_is_not_written_for_the_caller() -> None:
    """Under a name of the function's own: the next epoch would get weaker data."""
    cells = (START, HELD, "for _ in range(2):\n    net(data).square().sum().backward()")
    found = play(cells, watched=True, verify=True)
    assert found.diagnosis is not None, found.output
    assert found.diagnosis.rewrites[0].outcome is not Outcome.VERIFIED
    assert "strength = strength * 0.6" in edited(cells, found.diagnosis.rewrites[0])[1]
    run(edited(cells, found.diagnosis.rewrites[0]))


FRAMES = """def framed(image, value):
    image[0] = value
    return image
"""


def test_a_library_that_writes_to_what_it_is_given_is_given_a_copy_first(tmp_path: Path) -> None:
    """A copy for the saver would agree with the program as written, whose loss has the frame."""
    with installed(tmp_path, "somepaint", FRAMES):
        cells = (
            START + "from somepaint import framed\npages = []\n"
            "def show(step, picture):\n    page = framed(picture, 0.5)\n"
            "    pages.append(page.detach().clone())",
            "h = torch.sigmoid(w)\nshow(0, h)\n(h - 1).square().sum().backward()",
        )
        found = play(cells, watched=True, verify=True)
        assert found.diagnosis is not None, found.output
        first = found.diagnosis.rewrites[0]
        assert first.outcome is Outcome.DIFFERS and first.reason.key == "differs_for_caller"
        assert "page = framed(picture.clone(), 0.5)" in edited(cells, first)[0]
        assert all(r.outcome is not Outcome.VERIFIED for r in found.diagnosis.rewrites)
        run(edited(cells, first))


def test_a_write_that_callers_want_is_no_leak() -> None:
    cells = (
        START + "log = torch.zeros(3)\ndef accumulate(total, value):\n    total += value\n"
        "    return total",
        "h = torch.exp(w[:3])\naccumulate(log, h.detach())\naccumulate(h, torch.ones(3))\n"
        "h.sum().backward()",
    )
    found = play(cells, watched=True, verify=True)
    assert found.diagnosis is not None, found.output
    assert [r.outcome for r in found.diagnosis.rewrites][:1] == [Outcome.VERIFIED]
    assert all(r.outcome is not Outcome.DIFFERS for r in found.diagnosis.rewrites)


HIDDEN = {
    "an unpacked operand": (
        "p, q = (torch.randn(3, requires_grad=True) for _ in range(2))",
        "y = torch.mul(*(p, q)).sum()\nq.data.mul_(3)\ny.backward()",
        [("y = torch.mul(*(p, q)).sum()", "MulBackward0")],
    ),
    "two savers, each by its own node": (
        "x, v = torch.randn(4, 3), torch.randn(3, 2, requires_grad=True)",
        "a = torch.sigmoid(x @ v)\ny = (torch.softmax(a, 1) * a).sum()\na.data.mul_(3)\n"
        "y.backward()",
        [
            ("a = torch.sigmoid(x @ v)", "SigmoidBackward0"),
            ("y = (torch.softmax(a, 1) * a).sum()", "MulBackward0"),
        ],
    ),
    "a library that computes with the same weight thrice": (
        "net = nn.MultiheadAttention(4, 1, batch_first=True)\n"
        "x = torch.randn(2, 3, 4, requires_grad=True)",
        "y = net(x, x, x)[0].sum() + net(x + 1, x, x)[0].sum()\n"
        "net.in_proj_weight.data.mul_(3)\ny.backward()",
        [("y = net(x, x, x)[0].sum() + net(x + 1, x, x)[0].sum()", None)] * 2,
    ),
}


@pytest.mark.parametrize("name", sorted(HIDDEN))
def test_each_saver_of_a_hidden_write_is_told_once_with_its_node(name: str) -> None:
    start, cell, savers = HIDDEN[name]
    found = play((START + start, cell), watched=True)
    assert found.trouble == "" and found.diagnosis is not None
    saved = [e for e in found.diagnosis.finding.events if e.what is What.SAVED]
    told = [(e.place.source if e.place else "", e.op) for e in saved]
    assert [(line, None if node is None else op) for (line, op), (_, node)
            in zip(told, savers, strict=True)] == savers  # fmt: skip


def test_a_library_that_writes_through_data_has_no_tensor_of_the_users_for_its_operand() -> None:
    """`torch.autograd` in `torch.autograd.gradcheck(f, x)` is nothing to be copied."""
    write = (
        "import sys, types\nlib = types.ModuleType('torch.autograd.scaled')\n"
        "exec(compile('def scale(t):\\n    t.data.mul_(3)\\n', torch.__file__, 'exec'),"
        " vars(lib))\ntorch.autograd.scale = lib.scale\n"
        "v = torch.randn(3, requires_grad=True)"
    )
    cell = "y = (v * v).sum()\ntorch.autograd.scale(v)\ny.backward()"
    try:
        found = play((START + write, cell), watched=True)
    finally:
        vars(torch.autograd).pop("scale", None)
    assert found.trouble == "" and found.diagnosis is not None
    assert found.diagnosis.finding.cause == "silent_overwrite"
    facts = found.diagnosis.finding.facts
    assert "torch.autograd" not in (facts["alias"], facts["operand"], facts["tensor"])
    new = [edited((START + write, cell), r)[1] for r in found.diagnosis.rewrites]
    assert all("torch.autograd.scale(" in text for text in new)


def test_a_value_that_is_read_twice_where_it_is_saved_has_its_name_and_is_copied_twice() -> None:
    hook = (
        "class Tap:\n    def __call__(self, layer, args, out):\n        rows = out.flatten(1)\n"
        "        self.loss = (rows @ rows.t()).mean()\n"
        "tap, net = Tap(), nn.Sequential(nn.Linear(3, 3), nn.ReLU())\n"
        "net[0].register_forward_hook(tap)\nnet[1].inplace = True"
    )
    found = play((START + hook, "net(torch.rand(4, 3))\ntap.loss.backward()"))
    assert found.diagnosis is not None
    assert "rows" in found.diagnosis.finding.tensors[0].names
    changed = edited((START + hook, ""), found.diagnosis.rewrites[0])
    assert "self.loss = (rows.clone() @ rows.clone().t()).mean()" in changed[0]


BETWEEN = """
import torch
from torch import nn
class Squash(nn.Module):
    def forward(self, h):
        return (2 * h).sigmoid()
net = nn.Sequential(nn.Linear(2, 3), LAYER(), nn.Dropout(0.5, inplace=True))
net(torch.rand(4, 2)).sum().backward()
"""


@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.parametrize(
    ("layer", "names"),
    [("Squash", ("(2 * h).sigmoid()",)), ("nn.Sigmoid", ("net[1](...)", "net[1]"))],
)
def test_what_a_function_returns_to_a_library_is_named_as_it_is_computed(
    layer: str, names: tuple[str, ...], watched: bool
) -> None:
    found = play([BETWEEN.replace("LAYER", layer)], watched=watched).diagnosis
    assert found is not None and found.finding.cause == "saved_value_overwritten"
    assert found.finding.tensors[0].names == names


@pytest.mark.parametrize(
    ("also", "write", "made"),
    [
        ("", "h *= mask", "h = h * mask"),
        ("", "h[:1] = 0", "h = h.clone()"),
        ("rate = torch.ones(1)\nrate *= 2\n", "h *= mask", "h = h * mask"),
        ("def doubled(v):\n    v *= 2\ndoubled(torch.ones(1))\n", "h *= mask", ""),
    ],
)
def test_the_only_write_of_a_program_is_changed_where_the_writer_is_not_known(
    also: str, write: str, made: str
) -> None:
    """Not what still has its name and is another tensor; two that may be it are one too many."""
    cells = (
        START + "def encode(x):\n    return eval('(x * w).exp()', {'x': x, 'w': w})\n" + also,
        f"def pool(h, mask):\n    {write}\n    return h.sum(1)\n",
        "total = 0.0\nloss = pool(encode(torch.rand(2, 4)), torch.ones(2, 1)).mean()\n"
        "total += loss.item()\nloss.backward()",
    )
    found = play(cells)
    assert found.diagnosis is not None
    assert found.diagnosis.finding.variant == "write_unknown"
    changed = [edited(cells, r)[1] for r in found.diagnosis.rewrites]
    text = "".join(changed)
    assert made in text if made else "h = h" not in text


def test_the_only_write_stores_its_new_tensor_where_the_old_one_is_kept() -> None:
    cells = (
        START + "class Pooled:\n    def encode(self, x):\n"
        "        self.h = eval('(x * w).exp()', {'x': x, 'w': w})\n        return self\n"
        "    def pool(self, mask):\n        h = self.h\n        h *= mask\n"
        "        return h.sum()\n",
        "Pooled().encode(torch.rand(2, 4)).pool(torch.ones(2, 1)).backward()",
    )
    found = play(cells)
    assert found.diagnosis is not None
    assert found.diagnosis.finding.variant == "write_unknown"
    new = edited(cells, found.diagnosis.rewrites[0])[0]
    assert "h = h * mask\n        self.h = h\n" in new


ATTENTION = """import torch
class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin, self.processor = torch.nn.Linear(4, 4), None
    def scores(self, x):
        return self.lin(x).softmax(-1)
    def forward(self, x):
        return eval('self.processor(self, x)', {'self': self, 'x': x})
"""


@pytest.mark.parametrize("written", ["probs", "other"])
def test_a_write_in_a_callback_is_told_by_what_the_callback_keeps(
    tmp_path: Path, written: str
) -> None:
    cells = (
        START + "from attnlib import Attention\nclass Boost:\n    def __init__(self):\n"
        "        self.maps = []\n    def __call__(self, attn, x):\n"
        "        probs = attn.scores(x)\n        other = attn.scores(2 * x)\n"
        f"        {written}[:, 1] *= 2\n        self.maps.append(probs)\n"
        "        return probs @ x\n",
        "boost, attn = Boost(), Attention()\nattn.processor = boost",
        "attn(torch.rand(4, 4))\n"
        + "eval('boost.maps[0].mul_(2)')\n" * (written == "other")
        + "boost.maps[0].square().sum().backward()",
    )
    with installed(tmp_path, "attnlib", ATTENTION):
        found = play(cells).diagnosis
    assert found is not None and found.finding.cause == "saved_value_overwritten"
    changed, saved = (found.finding.place(w) for w in (What.CHANGED, What.SAVED))
    if written == "other":
        assert changed is None
        return
    assert changed is not None and changed.source == "probs[:, 1] *= 2"
    assert saved is not None and saved.source == "probs = attn.scores(x)"
    assert "probs = probs.clone()" in edited(cells, found.rewrites[0])[0]


SLOTS = """import torch
from torch import nn
class Slots:
    def __init__(self, size):
        self.parts = [torch.zeros(size, 3)]
    def put(self, at, x):
        self.parts[0].index_copy_(0, at, x)
        return self.parts[0]
class Net(nn.Module):
    def __init__(self, kept=None):
        super().__init__()
        self.lin = nn.Linear(3, 3)
        self.put = None if kept is None else kept.put
    def forward(self, x, slots, at):
        return (self.put or slots.put)(at, self.lin(x)).square().sum()
"""
PLAIN = "class Plan:\n    size = 4\n"


@pytest.mark.parametrize(
    ("kept", "handed", "names"),
    [("", "Slots(4)", ("slots",)), ("(lambda: Slots(4))()", "Plan()", ())],
)
def test_an_object_that_two_calls_were_handed_is_named_where_it_keeps_the_tensor(
    tmp_path: Path, kept: str, handed: str, names: tuple[str, ...]
) -> None:
    start = f"import torch\nfrom slotslib import *\nfrom planslib import *\nnet = Net({kept})\n"
    run_twice = f"""def run(x):
    slots = {handed}
    first = net(x, slots, torch.tensor([0]))
    return first + net(x * 2, slots, torch.tensor([1]))
"""
    folders = [tmp_path / name for name in ("slots", "plans")]
    for folder in folders:
        folder.mkdir()
    with installed(folders[0], "slotslib", SLOTS), installed(folders[1], "planslib", PLAIN):
        found = play((start, run_twice, "run(torch.rand(1, 3)).backward()"), watched=True).diagnosis
    assert found is not None and found.finding.cause == "saved_value_overwritten"
    assert found.finding.tensors[0].names == names and not found.rewrites


def test_an_object_whose_methods_saved_and_wrote_is_named(tmp_path: Path) -> None:
    lens = (
        "class Lens:\n    def __init__(self, k):\n        self._k = k * torch.eye(2)\n"
        "    def seen(self, x):\n        return x @ self._k\n"
        "    def halve_(self):\n        self._k[0] *= 0.5\n"
    )
    levels = (
        "def levels(lens, x):\n    total = 0.0\n    for _ in range(2):\n"
        "        total = total + lens.seen(x).sum()\n        lens.halve_()\n    return total\n"
    )
    cell = "f = torch.ones((), requires_grad=True)\nlevels(Lens(f), x).backward()"
    with installed(tmp_path, "lenslib", f"import torch\n{lens}"):
        start = "import torch\nfrom lenslib import Lens\nx = torch.rand(3, 2, requires_grad=True)\n"
        found = play((start, levels, cell)).diagnosis
    assert found is not None and found.finding.cause == "saved_value_overwritten"
    assert found.finding.tensors[0].names == ("lens",)
