"""`.grad` of results, read in the ways people read it: by name, in loops, of several at once.

A row is a notebook, the name shown first, and the lines that the rewrite brings in.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from knowledge.played import edited, explained, play
from notebook import installed

from autograd_explain.model import What
from autograd_explain.render.topic_content import cells_of

TORCH = "# %%\nimport torch\nfrom torch import nn\ntorch.manual_seed(0)\n"
PARTS = """
class Spring:
    def __init__(self):
        self.log = torch.zeros(3, requires_grad=True)
        self.k, self.c, self.m = self.log.exp()
spring = Spring()
loss = (spring.k * spring.c - spring.m).square()
loss.backward()
"""
LAYERS = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 4), nn.Linear(4, 1)
    def forward(self, x):
        self.h0 = torch.tanh(self.a(x))
        self.h1 = self.h0 * 2
        return self.b(self.h1)
net = Net()
net(torch.rand(5, 3)).square().mean().backward()
"""
ACTS = """
w = torch.rand(3, requires_grad=True)
acts = {}
def forward(x):
    acts["one"] = x.exp()
    acts["two"] = acts["one"] * w
    return acts["two"].sum()
forward(w).backward()
"""
LIBRARY = """
from types import SimpleNamespace
net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
def encode(x):
    maps = [net[0](x)]
    maps.append(maps[0].softmax(1))
    return SimpleNamespace(maps=tuple(maps), loss=net[1](maps[1]).mean())
"""
PROPERTY = """
class Kernel(nn.Module):
    def __init__(self):
        super().__init__()
        self.raw_scale = nn.Parameter(torch.zeros(2))
        self.floor = 0.1
    @property
    def scale(self):
        return nn.functional.softplus(self.raw_scale) + self.floor
kernel = Kernel()
(kernel.scale * torch.rand(2)).sum().backward()
"""
PROGRAMS: dict[str, tuple[str, str, list[str]]] = {
    "results that a loop goes through after the backward": (
        LIBRARY + "def summed(x):\n    out = encode(x)\n    out.loss.backward()\n    total = 0\n"
        "    for m in out.maps:\n        total = total + m.grad.sum()\n    return total\n"
        "# %%\nsummed(torch.rand(2, 3))\n",
        "m",
        ["for item in out.maps:", "item.retain_grad()"],
    ),
    "one of two values that a name may have": (
        "\nemb = nn.Embedding(5, 3)\ndef embedded(ids, noise=None):\n    h = emb(ids)\n"
        "    if noise is not None:\n        h = h + noise\n    return h.sum(), h\n"
        "loss, h = embedded(torch.tensor([1, 2]))\nloss.backward()\n# %%\nh.grad.sign()\n",
        "h",
        ["h.retain_grad()"],
    ),
    "parts of a vector by name": (
        PARTS + "# %%\nsens = {n: getattr(spring, n).grad for n in ('k', 'c', 'm')}\n",
        "spring.k",
        ["for item in (self.k, self.c, self.m):", "item.retain_grad()"],
    ),
    "one part of a vector": (
        PARTS + "# %%\nprint(spring.c.grad)\n",
        "spring.c",
        ["self.c.retain_grad()"],
    ),
    "layers by number": (
        LAYERS + '# %%\nfor i in range(2):\n    print(getattr(net, f"h{i}").grad)\n',
        "net.h0",
        ["self.h0.retain_grad()", "self.h1.retain_grad()"],
    ),
    "values of a dict": (
        ACTS + "# %%\ngrads = {k: t.grad for k, t in acts.items()}\n",
        "acts['one']",
        ['acts["one"].retain_grad()', 'acts["two"].retain_grad()'],
    ),
    "two results, one loop that fails": (
        """
w = torch.rand(3, 3, requires_grad=True)
q = w @ torch.ones(3)
k = w.t() @ torch.ones(3)
(q * k).sum().backward()
# %%
for t in (q, k):
    print(t.grad.norm())
""",
        "q",
        ["q.retain_grad()", "k.retain_grad()"],
    ),
    "two states of a recurrent network": (
        """
rnn = nn.LSTM(3, 4, batch_first=True)
out, (h, c) = rnn(torch.rand(2, 5, 3))
(out.sum() + c.square().sum()).backward()
# %%
print(out.grad)
print(c.grad)
""",
        "out",
        ["for new_item in (out, c):", "new_item.retain_grad()"],
    ),
    "a dict made anew at each step": (
        """
w = {"a": torch.rand(3, requires_grad=True), "b": torch.rand(3, requires_grad=True)}
for _ in range(2):
    w = {name: v - 0.1 * v for name, v in w.items()}
(w["a"] * w["b"]).sum().backward()
# %%
print(w["b"].grad)
""",
        "w['b']",
        ["for new_item in w.values():", "new_item.retain_grad()"],
    ),
    "what a call returns in a tuple": (
        """
def layers(x):
    return tuple((x * k).sin() for k in range(1, 4))
def look(x):
    maps = layers(x)
    torch.stack(maps).sum().backward()
    return [m.grad for m in maps]
x = torch.rand(3, requires_grad=True)
# %%
look(x)
""",
        "m",
        ["for item in maps:", "item.retain_grad()"],
    ),
    "results that torch itself reads": (
        """
w = torch.rand(3, 3, requires_grad=True)
q = w @ torch.ones(3)
k = w.t() @ torch.ones(3)
(q * k).sum().backward()
# %%
nn.utils.clip_grad_norm_([q, k], 1.0)
""",
        "q",
        ["q.retain_grad()", "k.retain_grad()"],
    ),
    "a result that a helper gets by keyword": (
        LAYERS
        + """
def report(**named):
    for name, value in named.items():
        grad = value.grad
        print(name, grad)
# %%
report(hidden=net.h0, weight=net.a.weight)
""",
        "net.h0",
        ["self.h0.retain_grad()"],
    ),
    "a result among what a helper sums over": (
        """
raw = torch.rand(3, requires_grad=True)
prior = (raw * 2).softmax(0)
def norm_of(tensors):
    return sum(t.grad.norm() for t in tensors)
prior.square().sum().backward()
# %%
norm_of([raw, prior])
""",
        "prior",
        ["prior.retain_grad()"],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_kept(name: str) -> None:
    text, shown, lines = PROGRAMS[name]
    cells = cells_of(TORCH + "# %%" + text)
    found = explained(cells)
    assert found.finding.cause == "intermediate_grad"
    assert found.finding.variant == ""
    assert found.finding.tensors[0].names[0] == shown
    before, after = "\n".join(cells), "\n".join(edited(cells, found.rewrites[0]))
    new = [line.strip() for line in after.splitlines() if line not in before.splitlines()]
    assert new == lines


COLLATED = """
from types import SimpleNamespace
net = nn.Linear(3, 1)
rows = [torch.rand(3, requires_grad=True) for _ in range(4)]
def loader():
    for i in (0, 2):
        yield SimpleNamespace(x=torch.stack(rows[i:i + 2]), size=2)
# %%
kept = []
for batch in loader():
    net(batch.x).sum().backward()
    kept.append(batch.x.grad)
"""


def test_what_a_loop_is_handed() -> None:
    cells = cells_of(TORCH + "# %%" + COLLATED)
    found = play(cells).diagnosis
    assert found is not None and found.finding.cause == "intermediate_grad"
    repaired = edited(cells, found.rewrites[0])
    assert "    batch.x.retain_grad()\n    net(batch.x)" in repaired[-1]


UNHELD = """
w = torch.rand(3, requires_grad=True)
def feats():
    return w.exp()
feats().sum().backward()
# %%
print(feats().grad)
"""


def test_a_result_that_nothing_holds() -> None:
    """The warning is explained from the source; there is no tensor to keep a gradient of."""
    cells = cells_of(TORCH + "# %%" + UNHELD)
    found = play(cells).diagnosis
    assert found is not None
    finding = found.finding
    assert (finding.cause, finding.facts["maker"]) == ("intermediate_grad", "w.exp()")
    assert not found.rewrites


def test_looking_at_it_warns_nobody(recwarn: pytest.WarningsRecorder) -> None:
    """The read of the user's own warns once; none comes of ours."""
    read = "a = torch.rand(3, requires_grad=True)\nb = a * 2\nloss = b.sum()\nloss.backward()\n"
    found = play(cells_of(TORCH + "# %%\n" + read + "print(b.grad.norm())\n"))
    assert found.diagnosis is not None and found.output.count("UserWarning") <= 1
    assert not [w for w in recwarn if "autograd_explain" in w.filename]


def test_a_loss_is_one_that_backward_was_called_on() -> None:
    cells = cells_of(TORCH + "# %%" + PARTS + "# %%\nprint(loss.grad)\n")
    found = play(cells).diagnosis
    assert found is not None and found.finding.variant == "root"


def test_a_property_is_read_of_the_parameter_behind_it() -> None:
    cells = cells_of(TORCH + "# %%" + PROPERTY + "# %%\nprint(kernel.scale.grad)\n")
    found = play(cells).diagnosis
    assert found is not None and found.finding.variant == "property"
    repaired = edited(cells, found.rewrites[0])
    assert repaired[-1].strip() == "print(kernel.raw_scale.grad)"


CRATE = """
class Crate:
    def __init__(self, w):
        self.held = w
    @property
    def w(self):
        return {read}
    @w.setter
    def w(self, w):
        self.held = w
def scaled(crate):
    crate.w = crate.w * 3
    return crate
# %%
other = scaled(Crate(torch.ones(2)))
crate = Crate(torch.rand(2, requires_grad=True))
crate = scaled(crate)
crate.w.exp().sum().backward()
print(crate.w.grad)
"""


@pytest.mark.parametrize(
    ("read", "maker"), [("self.held", "crate.w * 3"), ("self.held.tanh()", "self.held.tanh()")]
)
def test_what_was_given_to_a_property_is_what_it_gives_back(read: str, maker: str) -> None:
    """Only where it computes nothing itself."""
    found = explained(cells_of(TORCH + "# %%" + CRATE.format(read=read)))
    assert (found.finding.cause, found.finding.facts["maker"]) == ("intermediate_grad", maker)


TWICE = """
from types import SimpleNamespace
def scaled(crate):
    crate.w = crate.w * 3
    return crate
# %%
other = scaled(SimpleNamespace(w=torch.ones(2)))
crate = SimpleNamespace(w=torch.rand(2, requires_grad=True))
crate = scaled(crate)
crate.w.exp().sum().backward()
print(crate.w.grad)
"""


def test_a_gradient_is_kept_where_it_is_read_not_in_every_call() -> None:
    """The other call makes a tensor without a gradient: `retain_grad` would raise there."""
    cells = cells_of(TORCH + "# %%" + TWICE)
    repaired = edited(cells, explained(cells).rewrites[0])
    assert "crate.w.retain_grad()\ncrate.w.exp()" in repaired[-1]


MAPS = """import torch
from torch import nn
from types import SimpleNamespace
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)
    def forward(self, x):
        return SimpleNamespace(maps=(self.layer(x).tanh(),))
"""
LEFT = """
from types import SimpleNamespace
from torch.utils.data import DataLoader
from encoders import Encoder
rows, net = torch.rand(4, 3, requires_grad=True), Encoder()
def packed(parts):
    return SimpleNamespace(x=torch.stack(parts))
loader = DataLoader(list(rows), batch_size=2, collate_fn=packed)
# %%
for batch in loader:
    out = net(batch.x)
    out.maps[0].sum().backward()
    print({read}.grad)
"""


@pytest.mark.parametrize(
    ("read", "line"), [("out.maps[0]", "out = net(batch.x)"), ("batch.x", "for batch in loader:")]
)
def test_a_part_of_what_a_package_gave_is_told_where_it_was_got(
    tmp_path: Path, read: str, line: str
) -> None:
    cells = cells_of(TORCH + "# %%" + LEFT.format(read=read))
    with installed(tmp_path, "encoders", MAPS):
        found = explained(cells)
    place = found.finding.place(What.CAUSE)
    assert place is not None and place.source == line
    assert f"{read}.retain_grad()" in edited(cells, found.rewrites[0])[-1]
