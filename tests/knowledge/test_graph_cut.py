"""Graphs cut in ways that take a second look: modules under two names, properties, copies.

A row is a notebook, the variant, and the lines that the first rewrite brings in.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from knowledge.played import added, edited, explained, play
from knowledge.test_cases import run
from notebook import installed

from autograd_explain.model import What
from autograd_explain.render.topic_content import cells_of

TORCH = "# %%\nimport torch\nfrom torch import nn\ntorch.manual_seed(0)\n"
PROGRAMS: dict[str, tuple[str, str, list[str]]] = {
    "functional call with a state": (
        """
net = nn.Linear(3, 1)
def loss_of(params, x):
    return torch.func.functional_call(net, params, (x,)).square().mean()
# %%
params = {k: v * 0.9 for k, v in net.state_dict().items()}
loss_of(params, torch.rand(4, 3)).backward()
""",
        "detach",
        ["params = {k: v * 0.9 for k, v in net.state_dict(keep_vars=True).items()}"],
    ),
    "block that leaves out what is trained": (
        """
import contextlib
class Adapted(nn.Module):
    def __init__(self):
        super().__init__()
        self.base, self.delta = nn.Linear(3, 3).requires_grad_(False), nn.Linear(3, 3)
        self.on = True
    @contextlib.contextmanager
    def plain(self):
        self.on = False
        yield
        self.on = True
    def forward(self, x):
        return self.base(x) + self.delta(x) if self.on else self.base(x)
net, x = Adapted(), torch.rand(4, 3)
# %%
with net.plain():
    anchor = net(x).detach()
    out = net(x)
loss = (out - 1).square().mean() + (out - anchor).abs().mean()
loss.backward()
""",
        "block",
        ["out = net(x)"],
    ),
    "numbers stored into a tensor": (
        """
net, xs, ys = nn.Linear(3, 1), torch.rand(4, 3), torch.rand(4)
def mean_error():
    errors = torch.zeros(4)
    for i in range(4):
        errors[i] = (net(xs[i]) - ys[i]).square().item()
    return errors.mean()
# %%
mean_error().backward()
""",
        "number",
        ["errors[i] = (net(xs[i]) - ys[i]).square()"],
    ),
    "what is trained stored without its graph, before a frozen module": (
        """
frozen = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1)).requires_grad_(False)
prompt = nn.Parameter(torch.rand(2, 3))
opt = torch.optim.SGD([prompt], lr=0.1)
# %%
rows = torch.zeros(5, 3)
rows[2:] = torch.rand(3, 3)
rows[:2] = prompt.data
frozen(rows).square().mean().backward()
""",
        "detach",
        ["rows[:2] = prompt"],
    ),
    "block of a module that is frozen in it and outside": (
        """
import contextlib
class Plain(nn.Linear):
    @contextlib.contextmanager
    def quiet(self):
        yield
net, x = Plain(3, 3), torch.rand(4, 3)
for p in net.parameters():
    p.requires_grad = False
# %%
with net.quiet():
    loss = net(x).square().mean()
loss.backward()
""",
        "frozen",
        [],
    ),
    "filter of names that misses the head": (
        """
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
    def forward(self, x):
        return self.first(x).tanh()
class Tagger(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.norm, self.encoder, self.out = nn.LayerNorm(3), encoder, nn.Linear(4, 2)
    def forward(self, x):
        return self.out(self.encoder(self.norm(x)))
def freeze(module, but):
    for name, p in module.named_parameters():
        if but not in name:
            p.requires_grad = False
tagger = Tagger(Encoder())
freeze(tagger, "classifier")
opt = torch.optim.SGD(tagger.parameters(), 0.1)
# %%
loss = tagger(torch.rand(4, 3)).square().mean()
loss.backward()
""",
        "frozen",
        ["tagger.out.requires_grad_(True)"],
    ),
    "layers of which none was put on": (
        """
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2), nn.Linear(2, 1))
net.requires_grad_(False)
opt = torch.optim.SGD(net.parameters(), 0.1)
# %%
loss = net(torch.rand(4, 3)).square().mean()
loss.backward()
""",
        "frozen",
        [],
    ),
    "image to be changed, beside a frozen model": (
        """
class Features(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers, self.head = nn.Linear(3, 4), nn.Linear(4, 2)
    def forward(self, x):
        return self.head(self.layers(x).tanh())
net = Features()
for p in net.parameters():
    p.requires_grad_(False)
image = torch.rand(4, 3)
opt = torch.optim.Adam([image], lr=0.1)
# %%
loss = net(image).square().mean()
loss.backward()
""",
        "flag",
        ["image = torch.rand(4, 3, requires_grad=True)"],
    ),
    "embedding that is loaded frozen": (
        """
def epoch(model):
    loss = model(torch.tensor([1, 2])).square().mean()
    loss.backward()
words = nn.Embedding.from_pretrained(torch.randn(4, 3))
# %%
epoch(words)
""",
        "frozen",
        ["words = nn.Embedding.from_pretrained(torch.randn(4, 3), freeze=False)"],
    ),
    "critic left frozen by the actor's turn, beside a target": (
        """
import copy
class Agent:
    def __init__(self):
        self.actor, self.critic = nn.Linear(3, 2), nn.Linear(5, 1)
        self.target = copy.deepcopy(self.critic).requires_grad_(False)
        self.optimizers = [
            torch.optim.SGD(m.parameters(), 0.1) for m in (self.actor, self.critic)
        ]
    def value(self, state, action):
        with torch.no_grad():
            goal = self.target(torch.cat([state, self.actor(state)], 1))
        q = self.critic(torch.cat([state, action], 1))
        return (q - goal).square().mean()
    def act(self, state):
        self.critic.requires_grad_(False)
        return -self.critic(torch.cat([state, self.actor(state)], 1)).mean()
agent, state = Agent(), torch.rand(4, 3)
# %%
agent.act(state).backward()
loss = agent.value(state, torch.rand(4, 2))
loss.backward()
""",
        "frozen",
        ["self.critic.requires_grad_(True)"],
    ),
    "judge left frozen in a loop, beside a painting cut on purpose": (
        """
G, D = nn.Linear(2, 3), nn.Linear(3, 1)
painter, judge = (torch.optim.SGD(m.parameters(), 0.1) for m in (G, D))
# %%
for _ in range(2):
    judged = D(G(torch.rand(4, 2)).detach()).mean() - D(torch.rand(4, 3)).mean()
    judged.backward()
    judge.step()
    for p in D.parameters():
        p.requires_grad = False
    D(G(torch.rand(4, 2))).mean().backward()
    painter.step()
""",
        "frozen",
        ["p.requires_grad = True"],
    ),
    "painting cut on its way through a frozen judge": (
        """
G, D = nn.Linear(2, 3), nn.Linear(3, 1)
painter, judge = (torch.optim.SGD(m.parameters(), 0.1) for m in (G, D))
# %%
D.requires_grad_(False)
painted = G(torch.rand(4, 2)).detach()
loss = D(painted).mean()
loss.backward()
""",
        "detach",
        ["painted = G(torch.rand(4, 2))"],
    ),
    "gradient left by a backward": (
        """
w = torch.rand(3, requires_grad=True)
# %%
loss = w.pow(3).sum()
loss.backward()
(w.grad * torch.ones(3)).sum().backward()
""",
        "left",
        ["loss.backward(create_graph=True)"],
    ),
    "gradients of all parameters": (
        """
net = nn.Linear(3, 1)
def hvp(model, loss, v):
    loss.backward()
    flat = torch.cat([p.grad.view(-1) for p in model.parameters()])
    return torch.autograd.grad(flat @ v, model.parameters())
# %%
hvp(net, net(torch.rand(4, 3)).square().mean(), torch.ones(4))
""",
        "left",
        ["loss.backward(create_graph=True)"],
    ),
    "two derivatives on the way to the loss, a third one that is only looked at": (
        """
u = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
x = torch.rand(5, 2, requires_grad=True)
# %%
g = torch.autograd.grad(u(x).sum(), x)[0]
h = torch.autograd.grad(g[:, 0].sum(), x)[0]
(g[:, 1] - h[:, 0]).square().mean().backward()
print(torch.autograd.grad(u(x).sum(), x)[0])
""",
        "gradient",
        [
            "g = torch.autograd.grad(u(x).sum(), x, create_graph=True)[0]",
            "h = torch.autograd.grad(g[:, 0].sum(), x, create_graph=True)[0]",
        ],
    ),
    "target network that is the network": (
        """
critic = nn.Linear(3, 1)
opt = torch.optim.Adam(critic.parameters())
target = critic
target.requires_grad_(False)
# %%
x = torch.rand(4, 3)
with torch.no_grad():
    goal = target(x + 1)
loss = (critic(x) - goal).square().mean()
loss.backward()
""",
        "shared",
        ["import copy", "target = copy.deepcopy(critic)"],
    ),
    "one model passed as teacher and student": (
        """
import copy
class Distil:
    def __init__(self, teacher, student):
        self.teacher, self.student = teacher, student
        for p in self.teacher.parameters():
            p.requires_grad = False
        self.opt = torch.optim.SGD(student.parameters(), lr=0.1)
    def step(self, x):
        loss = (self.student(x) - self.teacher(x + 1)).square().mean()
        loss.backward()
# %%
net = nn.Linear(3, 1)
Distil(net, net).step(torch.rand(4, 3))
""",
        "shared",
        ["Distil(copy.deepcopy(net), net).step(torch.rand(4, 3))"],
    ),
    "one model under two keys": (
        """
from copy import deepcopy
online = nn.Linear(3, 1)
nets = {"online": online, "target": online}
opt = torch.optim.SGD(nets["online"].parameters(), lr=0.1)
def freeze(m):
    for p in m.parameters():
        p.requires_grad_(False)
freeze(nets["target"])
# %%
x = torch.rand(4, 3)
loss = (nets["online"](x) - nets["target"](x + 1)).square().mean()
loss.backward()
""",
        "shared",
        ['nets = {"online": online, "target": deepcopy(online)}'],
    ),
    "local name of one model": (
        """
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
def freeze(model):
    inner = model
    for p in inner.parameters():
        p.requires_grad_(False)
freeze(net)
# %%
loss = net(torch.rand(4, 3)).mean()
loss.backward()
""",
        "frozen",
        [],
    ),
    "an array that is counted on its way": (
        """
import numpy as np
def spread(x):
    a = x.detach().numpy()
    n = len(a)
    return torch.from_numpy(np.exp(a).sum(axis=0) / n)
spread(torch.ones(3, 2, requires_grad=True)).sum().backward()
""",
        "numpy",
        ["a = x", "return (torch.exp(a).sum(axis=0) / n)"],
    ),
    "an array that NumPy goes on with": (
        """
import numpy as np
def squashed(x):
    a = x.detach().numpy()
    for _ in range(2):
        a = np.tanh(a)
    return torch.tensor(a)
squashed(torch.ones(3, requires_grad=True)).sum().backward()
""",
        "numpy",
        ["a = x", "a = torch.tanh(a)", "return a"],
    ),
    "an array times another that is given": (
        """
import numpy as np
def weighted(x, w):
    a = x.detach().numpy()
    b = np.sin(a) * w
    return torch.from_numpy(b)
weighted(torch.ones(3, requires_grad=True), np.ones(3)).sum().backward()
""",
        "numpy",
        ["a = x", "b = torch.sin(a) * torch.as_tensor(w)", "return b"],
    ),
    "an array times what is computed of another": (
        """
import numpy as np
def outside(x, w):
    a = x.detach().numpy()
    b = (a * (1 - w)).sum()
    return torch.tensor(b)
outside(torch.ones(3, requires_grad=True), np.zeros(3, "float32")).backward()
""",
        "numpy",
        ["a = x", "b = (a * (1 - torch.as_tensor(w))).sum()", "return b"],
    ),
    "values sorted into bins": (
        """
shift = torch.zeros(1, requires_grad=True)
level = torch.bucketize(torch.rand(20) + shift, torch.linspace(0, 1, 5))
loss = torch.bincount(level, minlength=6).float().var()
loss.backward()
""",
        "bins",
        [],
    ),
    "copy of the data in a property": (
        """
class Particles:
    def __init__(self):
        self.at = torch.zeros(2)
    @property
    def positions(self):
        return self.at.data.clone()
# %%
speed = torch.ones(2, requires_grad=True)
cloud = Particles()
path = []
for _ in range(3):
    cloud.at = cloud.at + speed
    path.append(cloud.positions)
loss = torch.stack(path).sum()
loss.backward()
""",
        "detach",
        ["return self.at.clone()"],
    ),
    "snapshots of a method": (
        """
class Chain:
    def __init__(self, x):
        self.x = x
    def step(self):
        self.x = self.x.sin()
        return self.snapshot()
    def snapshot(self):
        return self.x.detach().clone()
# %%
x = torch.rand(3, requires_grad=True)
chain = Chain(x)
total = sum(chain.step().sum() for _ in range(3))
total.backward()
""",
        "detach",
        ["return self.x.clone()"],
    ),
}


TERMS = """
class Loss:
    def __init__(self, weight):
        self.weight = weight
    def __call__(self, scores):
        loss = torch.tensor(scores.detach().sum().item())
        if @:
            loss = loss + self.weight * scores.square().sum()
        return loss
net, loss = nn.Linear(3, 1), Loss(0.0)
value = loss(net(torch.rand(2, 3)))
value.backward()
"""


@pytest.mark.parametrize("taken", ["self.weight", "not self.weight == 0", "self.weight > 0"])
def test_a_term_that_a_setting_leaves_out_has_no_part(taken: str) -> None:
    finding = explained(cells_of(TORCH + "# %%" + TERMS.replace("@", taken))).finding
    assert finding.facts["operation"].startswith("scores.detach()")
    # Here nothing tells that the term was left out.
    unknown = TERMS.replace("@", taken).replace("value = ", "loss.weight = 0.0\nvalue = ")
    assert not explained(cells_of(TORCH + "# %%" + unknown)).finding.facts["operation"]


SUMS = """
net, x = nn.Linear(3, 1), torch.rand(2, 3)
def sums(steps):
    parts = [0.0, 0.0]
    with torch.no_grad():
        parts[1] += net(x).mean()
    for k in range(1, steps):
        parts[k] += net(x).square().mean()
    total = parts[-1]@
    total.backward()
sums(@)
"""


@pytest.mark.parametrize(
    ("end", "steps", "cause", "line"),
    [
        ("", "1", "grad_mode_off", "parts[1] += net(x).mean()"),
        (".detach()", "2", "graph_cut", "total = parts[-1]"),  # a round of the loop has run
    ],
)
def test_sums_in_a_list_are_followed(end: str, steps: str, cause: str, line: str) -> None:
    before, between, after = SUMS.split("@")
    cells = cells_of(TORCH + "# %%" + before + end + between + steps + after)
    diagnosis = explained(cells)
    assert diagnosis.finding.cause == cause
    repaired = edited(cells, diagnosis.rewrites[0])
    assert added(cells, repaired) == [line]
    run(repaired)


@pytest.mark.parametrize("name", PROGRAMS)
def test_cut(name: str) -> None:
    text, variant, lines = PROGRAMS[name]
    cells = cells_of(TORCH + "# %%" + text)
    diagnosis = explained(cells)
    finding, rewrites = diagnosis.finding, diagnosis.rewrites
    assert (finding.cause, finding.variant) == ("graph_cut", variant)
    if not lines:
        assert not rewrites
        return
    repaired = edited(cells, rewrites[0])
    assert added(cells, repaired) == lines
    run(repaired)


SCALED = """
import numpy as np
def to_numpy(t):
    return t.detach().cpu().numpy()
class Scaler:
    def __init__(self, a):
        self.mean, self.std = a.mean(axis=0), a.std(axis=0)
    def back(self, a):
        return np.expm1(a * self.std + self.mean)
scaler = Scaler(np.random.rand(8, 1).astype("float32"))
net = nn.Linear(3, 1)
# %%
pred = net(torch.rand(4, 3))
units = torch.tensor(scaler.back(to_numpy(pred)))
loss = units.square().mean()
loss.backward()
"""


def test_a_helper_leaves_torch_and_an_object_computes_with_arrays_of_its_own() -> None:
    cells = cells_of(TORCH + "# %%" + SCALED)
    diagnosis = explained(cells)
    named = [n for t in diagnosis.finding.tensors for n in t.names]
    assert {"pred", "units"} <= {*named}
    repaired = edited(cells, diagnosis.rewrites[0])
    run([*repaired, "assert net.weight.grad.abs().sum() > 0"])


def test_without_a_rewrite_the_reason_is_shown() -> None:
    """Before the general list of what to look at, where there is no room for both."""
    cells = cells_of(TORCH + "# %%" + PROGRAMS["values sorted into bins"][0])
    shown = play(cells).output
    assert "smooth weight" in shown


LIBRARY = """import torch

class Module(torch.nn.Module):
    def toggle(self, kept):
        for p in self.parameters():
            p.requires_grad = p.requires_grad and any(p is k for k in kept.parameters())
    def untoggle(self, kept):
        for p in self.parameters():
            p.requires_grad = True

class Saliency:
    def __init__(self, model):
        self.model = model
    def attribute(self, x):
        return torch.autograd.grad(self.model(x).sum(), x)[0]
"""
TURNS = """
from turnslib import Module
class Both(Module):
    def __init__(self):
        super().__init__()
        self.actor, self.critic = nn.Linear(3, 1), nn.Linear(3, 1)
    def turns(self, x):
        self.toggle(self.actor)
        self.actor(x).sum().backward()
        self.toggle(self.critic)
        loss = self.critic(x).square().mean()
        loss.backward()
        self.untoggle(self.critic)
# %%
Both().turns(torch.rand(4, 3))
"""


def test_a_librarys_switch_that_nothing_takes_back(tmp_path: Path) -> None:
    """Before the next switch of the kind; what takes back another one's does not count."""
    with installed(tmp_path, "turnslib", LIBRARY):
        cells = cells_of(TORCH + "# %%" + TURNS)
        diagnosis = explained(cells)
        place = diagnosis.finding.place(What.CAUSE)
        assert diagnosis.finding.variant == "switched"
        assert place is not None and place.source == "self.toggle(self.actor)"
        repaired = edited(cells, diagnosis.rewrites[0])
        assert added(cells, repaired) == ["self.untoggle(self.actor)"]
        run(repaired)


def test_each_switch_of_a_round_that_nothing_takes_back(tmp_path: Path) -> None:
    """The second one would freeze the first's turn of the next round."""
    text = TURNS.replace("        self.untoggle(self.critic)\n", "")
    text = text.replace("Both().turns", "both = Both()\nfor _ in range(2):\n    both.turns")
    with installed(tmp_path, "turnslib", LIBRARY):
        cells = cells_of(TORCH + "# %%" + text)
        repaired = edited(cells, explained(cells).rewrites[0])
        back = ["self.untoggle(self.actor)", "self.untoggle(self.critic)"]
        assert added(cells, repaired) == back
        run(repaired)


MERGED = """
import torch
from torch import nn
class Adapter(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base, self.merged = base.requires_grad_(False), False
        self.down = nn.Parameter(torch.rand_like(base.weight))
    def forward(self, x):
        out = self.base(x)
        return out if self.merged else out + x @ self.down.T
    def merge(self):
        self.base.weight.data += self.down.data
        self.merged = True
    def unmerge(self):
        self.base.weight.data -= self.down.data
        self.merged = False
"""
EVALUATED = """
from mergelib import Adapter
model = Adapter(nn.Linear(3, 1))
# %%
def evaluate(model, x):
    model.merge()
    with torch.no_grad():
        value = model(x).mean()
    return value.item()
def train(model, x):
    loss = model(x).square().mean()
    loss.backward()
# %%
for epoch in range(2):
    train(model, torch.rand(4, 3))
    evaluate(model, torch.rand(4, 3))
"""


def test_what_a_package_left_switched_after_an_evaluation(tmp_path: Path) -> None:
    with installed(tmp_path, "mergelib", MERGED):
        cells = cells_of(TORCH + "# %%" + EVALUATED)
        diagnosis = explained(cells)
        place = diagnosis.finding.place(What.CAUSE)
        assert diagnosis.finding.variant == "not_undone"
        assert place is not None and place.source == "model.merge()"
        repaired = edited(cells, diagnosis.rewrites[0])
        assert "model.unmerge()" in added(cells, repaired)
        run(repaired)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    evaluate(model", "evaluate(model"),  # behind the loop
        ("value = model(x).mean()\n", "value = model(x).mean()\n    model.unmerge()\n"),
    ],
)
def test_no_blame_for_what_came_later_or_was_taken_back(tmp_path: Path, old: str, new: str) -> None:
    library = MERGED.replace("x @ self.down.T", "(x @ self.down.T).data")
    with installed(tmp_path, "mergelib", library):
        diagnosis = explained(cells_of(TORCH + "# %%" + EVALUATED.replace(old, new)))
        assert diagnosis.finding.variant != "not_undone"


HELPED = """
class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(3, 1)
    def forward(self, x):
        return self.net(x)
critic, maker = Critic(), nn.Linear(2, 3)
def switch(nets, on=True):
    for net in nets if isinstance(nets, list) else [nets]:
        for p in net.parameters():
            p.requires_grad = on
def make(z):
    {call}
    critic(maker(z)).mean().backward()
def judge(x):
    critic(x).mean().backward()
# %%
for _ in range(2):
    judge(torch.rand(4, 3))
    make(torch.rand(4, 2))
"""
BUILT = """
class Tuned(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body = body
    def forward(self, x):
        return self.body(x)
def build(body):
    for p in body.parameters():
        p.requires_grad = False
    return Tuned(body)
body = nn.Linear(3, 1)
tuned = build(body)
# %%
tuned(torch.rand(4, 3)).sum().backward()
"""


@pytest.mark.parametrize(
    ("text", "cause", "lines"),
    [
        (HELPED.format(call=call), call, [call.replace("False", "True")])
        for call in ("switch(critic, False)", "switch(on=False, nets=[critic])")
    ]
    + [(BUILT, "p.requires_grad = False", [])],
)
def test_who_hands_a_module_to_what_freezes_it(text: str, cause: str, lines: list[str]) -> None:
    """The call, where the helper does nothing else with the module."""
    cells = cells_of(TORCH + "# %%" + text)
    found = explained(cells)
    place = found.finding.place(What.CAUSE)
    assert place is not None and place.source == cause
    repaired = edited(cells, found.rewrites[0]) if found.rewrites else cells
    assert added(cells, repaired) == lines
    if lines:
        run(repaired)


def test_a_frozen_model_is_not_blamed_for_what_a_library_was_handed(tmp_path: Path) -> None:
    text = """
from turnslib import Saliency
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).requires_grad_(False)
heat = Saliency(net)
x = torch.rand(4, 3, requires_grad=True)
# %%
shown = heat.attribute(2 * x)
loss = (shown - 1).square().mean()
loss.backward()
"""
    with installed(tmp_path, "turnslib", LIBRARY):
        finding = explained(cells_of(TORCH + "# %%" + text)).finding
    place = finding.place(What.CAUSE)
    assert finding.variant == "library"
    assert place is not None and place.source == "shown = heat.attribute(2 * x)"


IN_TURN = """
def learns(net, flag):
    for p in net.parameters():
        p.requires_grad_(flag)
class Painter(nn.Module):
    def __init__(self):
        super().__init__()
        self.brush = nn.Linear(2, 3)
    def forward(self, noise):
        return self.brush(noise)
painter, judge = Painter(), nn.Linear(3, 1)
learning = torch.optim.SGD(judge.parameters(), lr=0.1)
def round(noise, real):
    learns(painter, False)
    sample = painter(noise)
    loss = judge(sample.detach()).mean() - judge(real).mean()
    loss.backward()
    learning.step()
    learns(painter, True)
    learns(judge, False)
    cost = -judge(sample).mean()
    cost.backward()
# %%
round(torch.rand(4, 2), torch.rand(4, 3))
"""


def test_a_sample_made_in_the_turn_of_the_other_one() -> None:
    cells = cells_of(TORCH + "# %%" + IN_TURN)
    diagnosis = explained(cells)
    assert (diagnosis.finding.cause, diagnosis.finding.variant) == ("graph_cut", "then")
    repaired = edited(cells, diagnosis.rewrites[0])
    again = "    sample = painter(noise)\n    cost = -judge(sample).mean()\n"
    assert again in repaired[1] and again not in cells[1]
    run(repaired)


def test_what_cuts_within_the_module_may_be_to_blame() -> None:
    cells = cells_of(
        TORCH + "# %%" + IN_TURN.replace("self.brush(noise)", "self.brush(noise).detach()")
    )
    assert explained(cells).finding.variant != "then"


def test_what_became_of_it_since_may_be_to_blame() -> None:
    since = "sample = painter(noise)\n    sample = type(sample)(sample.tolist())"
    cells = cells_of(TORCH + "# %%" + IN_TURN.replace("sample = painter(noise)", since))
    assert explained(cells).finding.variant != "then"


def test_the_model_is_called_with_the_parts_of_the_vector() -> None:
    head = (
        "import torch\nfrom torch import nn\nfrom torch.nn.utils import vector_to_parameters\n"
        "net, x = nn.Linear(2, 1), torch.ones(4, 2)"
    )
    body = (
        "def energy(q):\n    vector_to_parameters(q, net.parameters())\n"
        "    return net(x).square().sum() + q.square().sum()\n"
        "torch.autograd.functional.hessian(energy, torch.ones(3))"
    )
    found = play((head, body), watched=True)
    assert found.trouble == "" and found.diagnosis is not None
    finding = found.diagnosis.finding
    assert (finding.variant, finding.facts["parameter"], finding.facts["value"]) == (
        "input",
        "q",
        "net(x)",
    )
    (rewrite,) = found.diagnosis.rewrites
    new = edited((head, body), rewrite)[1]
    assert "weights[name] = q[start : start + p.numel()].view_as(p)" in new
    assert "return fast(x).square().sum() + q.square().sum()" in new
