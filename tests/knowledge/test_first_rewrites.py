"""Programs whose first rewrite must be the one that runs: the cause, and the lines it brings in.

The repaired notebook is run; what it asserts holds.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from knowledge.played import edited, play
from knowledge.test_cases import run

from autograd_explain.model import What
from autograd_explain.render.topic_content import cells_of

TORCH = "# %%\nimport torch\nfrom torch import nn\nimport torch.nn.functional as F\n"


@dataclass(frozen=True)
class Program:
    """A notebook without its imports, and the new lines of its first rewrite in order."""

    name: str
    text: str
    cause: str
    lines: tuple[str, ...]
    watched: bool = False


PROGRAMS = (
    Program(
        "the saved tensor is a view itself, and a helper writes through another view of it",
        """
def masked(image):
    rows = image.squeeze(1)
    rows[:, :2] = 0.0
    return rows.unsqueeze(1)
net = nn.Conv2d(1, 2, 3)
# %%
image = torch.rand(6, 6, 6).unsqueeze(1)
# %%
clean = net(image)
loss = (clean - net(masked(image))).square().mean()
# %%
loss.backward()
""",
        "saved_value_overwritten",
        ("rows = image.squeeze(1).clone()",),
    ),
    Program(
        "the saved tensor is a view itself, and its detached alias is written",
        """
w = torch.rand(4, requires_grad=True)
x = torch.rand(8).view(2, 4)[0]
y = (w * x).sum()
numbers = x.detach()
numbers += 1
# %%
y.backward()
""",
        "saved_value_overwritten",
        ("numbers = x.detach().clone()",),
    ),
    Program(
        "forward sets the gradient mode by the training flag",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn, self.out = nn.BatchNorm1d(3), nn.Linear(3, 1)
    def forward(net, x):
        with torch.set_grad_enabled(net.training):
            x = net.bn(x)
            x = net.out(x)
        return x
# %%
model = Net().eval()
loss = model(torch.rand(4, 3)).sum()
loss.backward()
""",
        "grad_mode_off",
        (),
    ),
    Program(
        "forward without gradients unless it trains, in inference mode",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(3, 1)
    def forward(self, x):
        with torch.inference_mode(not self.training):
            return self.out(x)
# %%
model = Net().eval()
model(torch.rand(4, 3)).sum().backward()
""",
        "grad_mode_off",
        (),
    ),
    Program(
        "a view of what a property gives without gradients",
        """
class Line:
    def __init__(self):
        self.memory = torch.zeros(2, 6)
    @property
    @torch.no_grad()
    def window(self):
        return self.memory[:, 2:4]
    def push(self, sample):
        newest = self.window[:, -1]
        newest.copy_(sample)
# %%
gain = torch.ones(2, requires_grad=True)
line = Line()
line.push(gain * 3)
(line.memory * 2).sum().backward()
assert gain.grad.tolist() == [6, 6]
""",
        "view_made_under_no_grad",
        (),
    ),
    Program(
        "a transposed view of what a helper gives without gradients",
        """
@torch.no_grad()
def rows(table, n):
    return table[:n]
# %%
weight = torch.ones(2, requires_grad=True)
table = torch.zeros(4, 2)
columns = rows(table, 3).T
columns[0] += weight[0] * 5
table.sum().backward()
assert weight.grad.tolist() == [15, 0]
""",
        "view_made_under_no_grad",
        (),
    ),
    Program(
        "a buffer moved through .data behind the product that saved it",
        """
class Centres(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("centres", torch.randn(3, 4))
    def forward(self, z):
        near = z @ self.centres.t()
        self.centres.data[0] += z.detach().mean(0)
        return near
net, centres = nn.Linear(5, 4), Centres()
# %%
centres(net(torch.rand(6, 5))).square().sum().backward()
""",
        "silent_overwrite",
        ("near = z @ self.centres.clone().t()",),
        watched=True,
    ),
    Program(
        "a method of another object moves the buffer before backward",
        """
class Centres:
    def __init__(self):
        self.centres = torch.randn(3, 4)
    def near(self, z):
        return z @ self.centres.t()
    def follow(self, z):
        for k in range(2):
            self.centres.data[k] += z[k].detach()
net, centres = nn.Linear(5, 4), Centres()
# %%
def step(x):
    z = net(x)
    loss = centres.near(z).square().sum()
    centres.follow(z)
    net.zero_grad()
    loss.backward()
    return loss
step(torch.rand(6, 5))
""",
        "silent_overwrite",
        (),
        watched=True,
    ),
    Program(
        "a lookup with max_norm behind a product with the whole table",
        """
class Scores(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(6, 3, max_norm=1.0)
        self.out = nn.Linear(3, 4)
    def forward(self, x):
        table = self.out(self.words.weight)
        rows = self.words(x)
        return self.out(rows) @ table.t()
# %%
net = Scores()
net(torch.arange(4)).sum().backward()
""",
        "saved_value_overwritten",
        ("table = self.out(self.words.weight.clone())",),
    ),
    Program(
        "two heads evaluated once before the epochs, the graph retained",
        """
net, pi, v = nn.Linear(3, 4), nn.Linear(4, 2), nn.Linear(4, 1)
opt = torch.optim.Adam([*net.parameters(), *pi.parameters(), *v.parameters()])
x, returns = torch.rand(5, 3), torch.rand(5)
h = net(x).tanh()
logits, value = pi(h), v(h).squeeze(-1)
adv = (returns - value).detach()
for epoch in range(3):
    loss = -(logits.log_softmax(1)[:, 0] * adv).mean() + (returns - value).pow(2).mean()
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()
""",
        "step_between_backwards",
        ("loss.backward()",),
    ),
)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_first_rewrite(program: Program) -> None:
    cells = cells_of(TORCH + "# %%" + program.text)
    found = play(cells, watched=program.watched)
    assert found.trouble == ""
    assert found.diagnosis is not None, found.output
    assert found.diagnosis.finding.cause == program.cause
    assert found.diagnosis.rewrites, found.output
    repaired = edited(cells, found.diagnosis.rewrites[0])
    old = [line.strip() for cell in cells for line in cell.splitlines()]
    rows = [line.strip() for cell in repaired for line in cell.splitlines()]
    assert tuple(r for r in rows if r and r not in old) == program.lines
    assert repaired != cells
    run(repaired)


IN_TURN = """
def freeze(module):
    for p in module.parameters():
        p.requires_grad_(False)
class Player(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(2, 2)
    def forward(self, x):
        return self.net(x)
a, b = Player(), Player()
def first(x):
    freeze(b)
    return a(b(x)).sum()
def second(x):
    freeze(a)
    return b(a(x)).sum()
# %%
for play in (first, second):
    play(torch.rand(3, 2)).backward()
"""


def test_players_frozen_in_turn() -> None:
    """Nobody thaws them; the statement that froze is blamed though it froze either."""
    cells = cells_of(TORCH + "# %%" + IN_TURN)
    found = play(cells).diagnosis
    assert found is not None and found.finding.cause == "graph_cut"
    cause = found.finding.event(What.CAUSE)
    assert cause is not None and cause.place is not None
    assert cause.place.source == "p.requires_grad_(False)"
    repaired = edited(cells, found.rewrites[0])
    assert "    freeze(b)\n    a.requires_grad_(True)\n" in repaired[1]
    assert "    freeze(a)\n    b.requires_grad_(True)\n" in repaired[1]
    run(repaired)
