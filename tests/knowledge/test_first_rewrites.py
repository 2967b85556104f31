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


CLASSIFIER = """
class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.out = nn.Embedding(20, 6), nn.Linear(6, 3)
    def forward(self, ids):
        return self.out(self.emb(ids).mean(1))
model = Classifier()
ids = torch.randint(0, 20, (2, 5))
# %%"""

GIVEN = """
class Sample:
    def __init__(self):
        self.x = torch.rand(2, 3)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Linear(3, 3), nn.Linear(3, 1)
    def forward(self, given):
        given.x = self.embed(given.x)
        return self.head(given.x).mean()
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
# %%
"""
TASKS = """
enc, heads = nn.Linear(5, 4), nn.ModuleList(nn.Linear(4, 1) for _ in range(3))
def losses(x):
    z = torch.tanh(enc(x))
    return {i: (head(z) - 1).square().mean() for i, head in enumerate(heads)}
# %%
for step in range(2):
"""
PROGRAMS = (
    Program(
        "a projection in each forward, of what two operations saved: both get a copy",
        """
class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.u, self.lin = nn.Parameter(torch.rand(3)), nn.Linear(3, 3)
    def forward(self, z):
        with torch.no_grad():
            self.u.div_(self.u.sum())
        h = torch.tanh(self.lin(z))
        out = h * self.u
        return out + torch.log1p((h @ self.u) ** 2).mean()
flow, x = Flow(), torch.rand(4, 3)
# %%
loss = sum(flow(x).square().mean() for _ in range(3))
loss.backward()
""",
        "saved_value_overwritten",
        (
            "out = h * self.u.clone()",
            "return out + torch.log1p((h @ self.u.clone()) ** 2).mean()",
        ),
    ),
    Program(
        "losses of one forward pass, gone back from in turn",
        TASKS
        + "    parts, found = losses(torch.rand(6, 5)), []\n    for i, loss in parts.items():\n"
        "        found.append(torch.autograd.grad(loss, enc.weight)[0])\nassert len(found) == 3\n",
        "second_backward",
        ("found.append(torch.autograd.grad(loss, enc.weight, retain_graph=True)[0])",),
    ),
    Program(
        "the same losses where the loop alone holds them",
        TASKS + "    for loss, head in zip(losses(torch.rand(6, 5)).values(), heads):\n"
        "        loss.backward()\n        with torch.no_grad():\n"
        "            head.bias -= head.bias.grad\n",
        "second_backward",
        ("loss.backward(retain_graph=True)",),
    ),
    Program(
        "a second pass that adds to the loss of the first",
        TASKS + "    x = torch.rand(6, 5)\n    total = 0.0\n    for part in losses(x).values():\n"
        "        total += part\n    total.backward()\n    with torch.no_grad():\n"
        "        enc.weight += 0.1 * enc.weight.grad\n    for part in losses(x).values():\n"
        "        total += part\n    total.backward()\n",
        "second_backward",
        (),  # the line that the program has already
    ),
    Program(
        "targets of before the loop, by the module that the loop trains on other rows",
        """
critic = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
opt = torch.optim.SGD(critic.parameters(), lr=0.01)
def bootstrapped(states, rewards):
    return rewards + 0.9 * critic(states[1:]).squeeze(-1)
# %%
states, rewards = torch.randn(9, 3), torch.rand(8)
targets = bootstrapped(states, rewards)
first = targets.clone()
for epoch in range(3):
    loss = F.mse_loss(critic(states[:-1]).squeeze(-1), targets)
    opt.zero_grad()
    loss.backward()
    opt.step()
assert torch.equal(targets, first)
""",
        "second_backward",
        ("targets = targets.detach()",),
    ),
    Program(
        "features of before the loop, with an activation that the loop calls as well",
        """
encoder, head, act = nn.Linear(6, 4), nn.Linear(4, 3), nn.ReLU()
opt = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
x = torch.randn(10, 6)
features = act(encoder(x))
start = encoder.weight.clone()
for epoch in range(3):
    loss = act(head(features)).square().mean() + encoder.bias.square().sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
assert encoder.weight.ne(start).any()
""",
        "second_backward",
        (),  # the line that the program has already
    ),
    Program(
        "slots of a memory, which begins as a view of a parameter",
        """
class Memory(nn.Module):
    def __init__(self):
        super().__init__()
        self.start, self.write = nn.Parameter(torch.rand(4, 3)), nn.Linear(3, 3)
    def forward(self, xs):
        mem, found = self.start.expand(len(xs), -1, -1), []
        for t in range(xs.shape[1]):
            found.append((mem @ xs[:, t, :, None]).sum(1))
            mem[:, t] = torch.tanh(self.write(xs[:, t]))
        return torch.stack(found)
net = Memory()
# %%
net(torch.rand(2, 3, 3)).sum().backward()
assert net.write.weight.grad.abs().sum() > 0 and net.start.grad.abs().sum() > 0
""",
        "view_of_leaf_written",
        ("mem = mem.clone()",),
    ),
    Program(
        "a queue of keys that is read before it gets those of the round",
        """
class Contrast(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k = nn.Linear(3, 4), nn.Linear(3, 4)
        self.register_buffer("queue", torch.rand(6, 4))
    def forward(self, x, at):
        q, keys = self.q(x), self.k(x)
        scores = torch.cat([(q * keys).sum(1, keepdim=True), q @ self.queue.t()], 1)
        self.queue[at : at + len(x)] = keys
        return F.cross_entropy(scores, torch.zeros(len(x), dtype=torch.long))
net = Contrast()
# %%
for at in (0, 2, 4):
    net(torch.rand(2, 3), at).backward()
""",
        "saved_value_overwritten",
        (
            "scores = torch.cat([(q * keys).sum(1, keepdim=True),"
            " q @ self.queue.t().detach().clone()], 1)",
        ),
    ),
    Program(
        "a penalty added to a loss that has gone backward",
        TASKS + "    x = torch.rand(6, 5)\n    loss = enc(x).square().mean()\n"
        "    loss.backward()\n    loss += losses(x)[0]\n    loss.backward()\n",
        "second_backward",
        ("loss = losses(x)[0]",),
    ),
    Program(
        "fast weights that each task should begin with anew",
        """
net, tasks = nn.Linear(2, 1), [torch.rand(4, 2) for _ in range(3)]
# %%
fast = list(net.parameters())
for x in tasks:
    for _ in range(2):
        grads = torch.autograd.grad(F.linear(x, *fast).square().mean(), fast, create_graph=True)
        fast = [w - 0.1 * g for w, g in zip(fast, grads)]
    F.linear(x, *fast).square().mean().backward()
assert net.weight.grad.abs().sum() > 0
""",
        "second_backward",
        (),  # the line that the program has already
    ),
    Program(
        "a Hessian row by row",
        """
def rows(f, x):
    (g,) = torch.autograd.grad(f(x), x, create_graph=True)
    return torch.stack([torch.autograd.grad(g[k], x)[0] for k in range(len(x))])
x = torch.rand(3, requires_grad=True)
# %%
assert rows(lambda v: v.pow(3).sum(), x).shape == (3, 3)
""",
        "second_backward",
        (
            "return torch.stack([torch.autograd.grad(g[k], x, retain_graph=True)[0]"
            " for k in range(len(x))])",
        ),
    ),
    Program(
        "parts of a value computed once, between updates by hand",
        """
w, t = torch.rand(4, requires_grad=True), torch.rand(5)
y = (w * torch.ones(5, 4)).exp().sum(1)
# %%
for i in range(5):
    (y[i] - t[i]).square().backward()
    with torch.no_grad():
        w -= 0.01 * w.grad
""",
        "second_backward",
        (),  # the line that computes it moves into the loop
    ),
    Program(
        "create_graph said by position",
        """
net = nn.Linear(2, 2)
jacobian = torch.autograd.functional.jacobian
# %%
j = jacobian(lambda v: net(v).tanh(), torch.rand(2), False)
j.square().sum().backward()
assert net.weight.grad.abs().sum() > 0
""",
        "graph_cut",
        ("j = jacobian(lambda v: net(v).tanh(), torch.rand(2), True)",),
    ),
    Program(
        "a loss computed anew behind a step, and thrown away",
        """
net, x, y = nn.Linear(3, 2), torch.rand(4, 3), torch.rand(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
# %%
loss = F.mse_loss(net(x), y)
loss.backward()
opt.step()
opt.zero_grad()
F.mse_loss(net(x), y)
loss.backward()
assert torch.equal(net.bias.grad, torch.autograd.grad(F.mse_loss(net(x), y), net.bias)[0])
""",
        "second_backward",
        (),  # the line that the program has already
    ),
    Program(
        "what a model computes of the data is put back into the data",
        GIVEN
        + "samples = [Sample(), Sample()]\nfor epoch in range(2):\n    for given in samples:\n"
        "        opt.zero_grad()\n        net(given).backward()\n        opt.step()\n",
        "second_backward",
        ("import copy", "given = copy.copy(given)"),
    ),
    Program(
        "the same, seen as it ran, of a state that all rounds share",
        GIVEN
        + "given = Sample()\nfor step in range(3):\n    opt.zero_grad()\n    loss = net(given)\n"
        "    loss.backward()\n    opt.step()\n",
        "second_backward",
        ("given.x = given.x.detach()",),
        watched=True,
    ),
    Program(
        "several layers of a model that is copied keep what they have computed",
        """
import copy
class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.load = nn.Linear(3, 3), torch.zeros(())
    def forward(self, x):
        p = self.fc(x).softmax(-1)
        self.load = p.square().mean()
        return x * p
net = nn.Sequential(Gate(), Gate(), nn.Linear(3, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
# %%
loss = net(torch.rand(4, 3)).mean() + net[0].load + net[1].load
loss.backward()
opt.step()
snapshot = copy.deepcopy(net)
assert len(list(snapshot.parameters())) == 6
""",
        "deepcopy_non_leaf",
        (
            "for module in net.modules():",
            'if getattr(module, "load", None) is not None:',
            "module.load = None",
        ),
    ),
    Program(
        "a loop writes to the elements of a list that a module has returned",
        """
class Pyramid(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 3)
    def forward(self, x):
        fine = torch.relu(self.first(x))
        return [fine, torch.relu(self.second(fine))]
net = Pyramid()
# %%
levels = net(torch.rand(4, 3))
for level in levels:
    level -= level.mean()
loss = sum(level.square().sum() for level in levels)
loss.backward()
""",
        "saved_value_overwritten",
        ("for i, level in enumerate(levels):", "levels[i] = level - level.mean()"),
    ),
    Program(
        "a row of a tensor is set to zero by a method",
        """
core, head = nn.GRU(3, 4, num_layers=2), nn.Linear(4, 1)
def unroll(chunks):
    h, loss = torch.zeros(2, 2, 4), 0
    for chunk in chunks:
        _, h = core(chunk, h)
        loss = loss + head(h).tanh().square().mean()
        h[0].zero_()
    return loss
# %%
loss = unroll(torch.randn(3, 5, 2, 3))
loss.backward()
""",
        "saved_value_overwritten",
        ("loss = loss + head(h.clone()).tanh().square().mean()",),
    ),
    Program(
        "rows of a tensor that several operations have saved are divided by what they hold",
        """
enc = nn.Linear(3, 4)
def scores(x):
    h = torch.sigmoid(enc(x))
    z = h * h.exp()
    for i in range(len(h)):
        h[i].div_(h[i].sum())
    return z, h
# %%
z, h = scores(torch.randn(5, 3))
(z.sum() + (h * torch.arange(4.0)).sum()).backward()
""",
        "saved_value_overwritten",
        ("value = h[i].sum()", "h = h.clone()", "h[i].div_(value)"),
    ),
    Program(
        "the state that a cell returned as a tuple is masked in place",
        """
cell, head = nn.LSTMCell(3, 4), nn.Linear(4, 1)
def rollout(xs, masks):
    state, outs = (torch.zeros(2, 4), torch.zeros(2, 4)), []
    for x, m in zip(xs, masks):
        state = cell(x, state)
        outs.append(head(state[0]))
        state[0].mul_(m)
        state[1].mul_(m)
    return torch.stack(outs)
# %%
loss = rollout(torch.randn(4, 2, 3), torch.ones(4, 2, 1)).square().mean()
loss.backward()
""",
        "saved_value_overwritten",
        ("state = (state[0].mul(m), state[1])",),
    ),
    Program(
        "tuples of states in a list are reset in place",
        """
class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells = nn.ModuleList([nn.LSTMCell(3, 4), nn.LSTMCell(4, 4)])
        self.out = nn.Linear(4, 1)
    def forward(self, xs, ends):
        states = [(torch.zeros(2, 4), torch.zeros(2, 4)) for _ in self.cells]
        ys = []
        for x, end in zip(xs, ends):
            for i, cell in enumerate(self.cells):
                states[i] = cell(x, states[i])
                x = states[i][0]
            ys.append(self.out(x))
            if end:
                for i in range(2):
                    states[i][0].zero_()
        return torch.stack(ys)
net = Stack()
# %%
net(torch.randn(4, 2, 3), [0, 1, 0, 0]).square().mean().backward()
""",
        "saved_value_overwritten",
        ("states[i] = (torch.zeros_like(states[i][0]), states[i][1])",),
    ),
    Program(
        "several views of one tensor are clamped by methods, at the top of a notebook",
        """
head = nn.Linear(8, 4)
# %%
boxes = head(torch.randn(5, 8))
x0, y0, x1, y1 = boxes.unbind(-1)
x0.clamp_(0, 10)
x1.clamp_(0, 10)
((x1 - x0) * (y1 - y0)).square().mean().backward()
""",
        "multi_view_written",
        ("x0 = x0.clamp(0, 10)", "x1 = x1.clamp(0, 10)"),
        watched=True,
    ),
    Program(
        "views of two tensors are written in one function",
        """
net = nn.Linear(2, 4)
def coupled(x):
    a, b = x.chunk(2, -1)
    scale, shift = net(a).chunk(2, -1)
    scale.tanh_()
    b *= scale.exp()
    return torch.cat([a, b + shift], -1)
# %%
coupled(coupled(torch.ones(3, 4))).square().mean().backward()
""",
        "multi_view_written",
        ("scale = scale.tanh()", "b = b * scale.exp()"),
    ),
    Program(
        "two views are turned, and the tensor that they are parts of is handed out",
        """
lin = nn.Linear(4, 6)
def turned(x, c, s):
    left, right = x.chunk(2, dim=-1)
    old = left.clone()
    left.mul_(c).sub_(right * s)
    right.mul_(c).add_(old * s)
    return x
# %%
turned(lin(torch.ones(3, 4)), 0.6, 0.8).square().mean().backward()
""",
        "multi_view_written",
        (
            "left = left.mul(c).sub(right * s)",
            "right = right.mul(c).add(old * s)",
            "x = torch.cat([left, right], dim=-1)",
        ),
    ),
    Program(
        "a function hands out the parts of what it is given, in a loop",
        """
lin = nn.Linear(4, 6)
def parts_of(x, sizes):
    yield from x.split(sizes)
# %%
total = 0.0
for part in parts_of(lin(torch.randn(5, 4)), [2, 3]):
    part -= part.mean(0)
    total = total + part.square().mean()
total.backward()
""",
        "multi_view_written",
        ("part = part - part.mean(0)",),
    ),
    Program(
        "a tuple of views is scaled in a loop",
        """
lin = nn.Linear(4, 6)
# %%
y = lin(torch.randn(3, 4))
parts = torch.split(y, 2, dim=-1)
for p, s in zip(parts, [1.0, 0.5, 0.25]):
    p *= s
sum(p.square().mean() for p in parts).backward()
""",
        "multi_view_written",
        (
            "parts = list(parts)",
            "for i, (p, s) in enumerate(zip(parts, [1.0, 0.5, 0.25])):",
            "p = p * s",
            "parts[i] = p",
        ),
        watched=True,
    ),
    Program(
        "what a rollout has stored has names, and the loop trains the same networks",
        """
class Buffer:
    def __init__(self):
        self.obs, self.logp, self.values = [], [], []
    def add(self, o, lp, v):
        self.obs.append(o); self.logp.append(lp); self.values.append(v)
    def tensors(self):
        return torch.stack(self.obs), torch.stack(self.logp), torch.stack(self.values)
pi, critic = nn.Linear(3, 2), nn.Linear(3, 1)
opt = torch.optim.SGD([*pi.parameters(), *critic.parameters()], lr=0.1)
buf = Buffer()
for _ in range(4):
    o = torch.randn(3)
    buf.add(o, pi(o).log_softmax(-1)[0], critic(o).squeeze())
# %%
obs, old, values = buf.tensors()
gain = torch.ones(4) - values
for _ in range(2):
    ratio = (pi(obs).log_softmax(-1)[:, 0] - old).exp()
    loss = -(ratio * gain).mean() + (critic(obs).squeeze() - 1).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
        "second_backward",
        ("gain = gain.detach()", "old = old.detach()"),
    ),
    Program(
        "a memory of dicts has several values with a graph",
        """
class Memory:
    def __init__(self):
        self.rows = []
    def push(self, **row):
        self.rows.append(row)
    def column(self, key):
        return torch.stack([row[key] for row in self.rows])
pi, critic = nn.Linear(3, 2), nn.Linear(3, 1)
opt = torch.optim.SGD([*pi.parameters(), *critic.parameters()], lr=0.1)
memory = Memory()
for _ in range(4):
    o = torch.randn(3)
    memory.push(o=o, logp=pi(o).log_softmax(-1)[0], v=critic(o).squeeze())
# %%
for _ in range(2):
    obs = memory.column("o")
    ratio = (pi(obs).log_softmax(-1)[:, 0] - memory.column("logp")).exp()
    loss = -(ratio * (1 - memory.column("v"))).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
        "second_backward",
        (
            "memory.push(o=o, logp=pi(o).log_softmax(-1)[0].detach(), "
            "v=critic(o).squeeze().detach())",
        ),
    ),
    Program(
        "token ids are to require grad",
        CLASSIFIER
        + """
ids.requires_grad_()
score = model(ids)[:, 1].sum()
score.backward()
saliency = ids.grad.abs().sum(-1)
assert saliency.shape == (2, 5) and model.emb.weight.grad is not None
""",
        "requires_grad_on_integer",
        (
            "embeds = model.emb(ids)",
            "embeds.retain_grad()",
            "handle = model.emb.register_forward_hook(lambda module, args, output: embeds)",
            "handle.remove()",
            "saliency = embeds.grad.abs().sum(-1)",
        ),
    ),
    Program(
        "a derivative by token ids",
        CLASSIFIER
        + """
def saliency(model, tokens):
    vectors = model.emb(tokens)
    score = model.out(vectors.mean(1))[:, 1].sum()
    return torch.autograd.grad(score, tokens)[0].abs().sum(-1)
assert saliency(model, ids).shape == (2, 5)
""",
        "input_without_grad",
        ("return torch.autograd.grad(score, vectors)[0].abs().sum(-1)",),
    ),
    Program(
        "one of two embedding layers is given ids that come in a dict",
        """
class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe, self.out = nn.Embedding(20, 6), nn.Embedding(5, 6), nn.Linear(6, 3)
    def forward(self, input_ids=None, mask=None):
        x = self.wte(input_ids) + self.wpe(torch.arange(5))
        return self.out((x * mask[..., None]).mean(1))
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.tower = Tower()
    def forward(self, input_ids, mask):
        return self.tower(input_ids, mask)
model = Model().requires_grad_(False)
batch = dict(input_ids=torch.randint(0, 20, (2, 5)), mask=torch.ones(2, 5))
# %%
ids = batch["input_ids"]
ids.requires_grad = True
model(**batch)[:, 0].sum().backward()
assert ids.grad.shape == (2, 5, 6)
""",
        "requires_grad_on_integer",
        (
            "embeds = model.tower.wte(ids).detach().requires_grad_()",
            "handle = model.tower.wte.register_forward_hook(lambda module, args, output: embeds)",
            "handle.remove()",
            "assert embeds.grad.shape == (2, 5, 6)",
        ),
    ),
    Program(
        "second derivatives by a function that returns a function",
        """
net = nn.Sequential(nn.Linear(1, 4), nn.Tanh(), nn.Linear(4, 1))
def ddx(fn):
    def slope(x):
        return torch.autograd.functional.jacobian(lambda t: fn(t).sum(), x)
    return slope
u_xx = ddx(ddx(lambda x: x * net(x)))
# %%
u_xx(torch.rand(3, 1)).square().mean().backward()
assert net[0].weight.grad.abs().sum() > 0
""",
        "graph_cut",
        ("return torch.autograd.functional.jacobian(lambda t: fn(t).sum(), x, create_graph=True)",),
    ),
    Program(
        "a function of its own and a lambda are differentiated by two methods",
        """
from torch.autograd import functional as AF
class Dynamics:
    def __init__(self, energy):
        self.energy = energy
    def force(self, q):
        def total(p):
            return self.energy(p).sum()
        return -AF.jacobian(total, q)
    def stiffness(self, q):
        return AF.hessian(lambda p: self.energy(p).sum(), q)
dyn = Dynamics(nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1)))
# %%
q = torch.randn(2)
miss = dyn.force(q).square().sum() + dyn.stiffness(q).diagonal().sum()
miss.backward()
""",
        "graph_cut",
        (
            "return -AF.jacobian(total, q, create_graph=True)",
            "return AF.hessian(lambda p: self.energy(p).sum(), q, create_graph=True)",
        ),
    ),
    Program(
        "gates of a bias get their starting values",
        """
class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.gates = nn.Linear(3, 8)
        i, f, g, o = self.gates.bias.chunk(4)
        f.fill_(1.0)
        i.zero_()
# %%
cell = Cell()
cell.gates(torch.ones(3)).sum().backward()
assert cell.gates.bias[2:4].tolist() == [1, 1] and cell.gates.bias.grad is not None
""",
        "multi_view_written",
        ("with torch.no_grad():",),
    ),
    Program(
        "a part of a parameter is computed with, beside the rest",
        """
class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(4, 4))
    def forward(self, x):
        keep, drop = self.w.split(2)
        drop.mul_(0.5)
        return x @ torch.cat([keep, drop])
masked = Masked()
# %%
masked(torch.ones(3, 4)).sum().backward()
assert masked.w.grad[3].tolist() == [1.5] * 4
""",
        "multi_view_written",
        ("drop = drop.mul(0.5)",),
    ),
    Program(
        "a scaler steps the optimizer between two backwards",
        """
G, D = nn.Linear(3, 3), nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
optG, optD = torch.optim.SGD(G.parameters(), 0.1), torch.optim.SGD(D.parameters(), 0.1)
scalerG, scalerD = torch.amp.GradScaler("cpu"), torch.amp.GradScaler("cpu")
def step(z):
    fake = G(z)
    score = D(fake)
    optD.zero_grad()
    scalerD.scale(F.softplus(score).mean()).backward(retain_graph=True)
    scalerD.step(optD)
    g_loss = F.softplus(-score).mean()
    optG.zero_grad()
    scalerG.scale(g_loss).backward()
    scalerG.step(optG)
# %%
step(torch.randn(4, 3))
""",
        "step_between_backwards",
        (),
    ),
    Program(
        "one step wrote two modules that the second loss goes back through",
        """
G, body, D, Q = nn.Linear(3, 4), nn.Linear(4, 4), nn.Linear(4, 1), nn.Linear(4, 2)
opt_d = torch.optim.Adam([*body.parameters(), *D.parameters()])
opt_g = torch.optim.Adam([*G.parameters(), *Q.parameters()])
code = torch.rand(5, 2)
for _ in range(2):
    fake = G(torch.cat([code, torch.rand(5, 1)], 1))
    feat = torch.tanh(body(fake))
    score = D(feat)
    opt_d.zero_grad()
    F.softplus(score).mean().backward(retain_graph=True)
    opt_d.step()
    opt_g.zero_grad()
    loss = F.softplus(-score).mean() + (Q(feat) - code).square().mean()
    loss.backward()
    opt_g.step()
""",
        "step_between_backwards",
        (),
    ),
    Program(
        "two steps wrote what the third loss goes back through, and its optimizer clears first",
        """
G, D = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 4)), nn.Sequential(nn.Linear(4, 3), nn.Tanh())
A, Q = nn.Linear(3, 1), nn.Linear(3, 3)
opt_g = torch.optim.Adam(G.parameters())
opt_d = torch.optim.Adam([*D.parameters(), *A.parameters(), *Q.parameters()])
opt_info = torch.optim.Adam([p for m in (G, D, Q) for p in m.parameters()])
z = torch.rand(5, 3)
fake = G(z)
hidden = D(fake)
code = Q(hidden)
opt_g.zero_grad()
F.softplus(-A(hidden)).mean().backward(retain_graph=True)
opt_g.step()
opt_d.zero_grad()
F.softplus(A(D(fake.detach()))).mean().backward()
opt_d.step()
opt_info.zero_grad()
info = (code - z).square().mean()
info.backward()
opt_info.step()
""",
        "step_between_backwards",
        (),
    ),
    Program(
        "a loop writes to each of the states that a model returned, which other layers saved",
        """
class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(3))
    def forward(self, x):
        states = []
        for layer in self.layers:
            x = layer(x)
            states.append(x)
        return states
stack, pooled = Stack(), []
for h in stack(torch.rand(2, 3)):
    h /= h.norm(dim=-1, keepdim=True)
    pooled.append(h.mean())
torch.stack(pooled).sum().backward()
""",
        "saved_value_overwritten",
        ("h = h / h.norm(dim=-1, keepdim=True)",),
    ),
    Program(
        "the loop goes on with the element",
        """
w = torch.rand(3, requires_grad=True)
# %%
parts, total = [w.exp(), w.sigmoid()], 0
for part in parts:
    part.mul_(2)
    total = total + part.sum()
total.backward()
""",
        "saved_value_overwritten",
        ("for i, part in enumerate(parts):", "part = part.mul(2)", "parts[i] = part"),
    ),
    Program(
        "a parameter is normalised between the forward pass and the loss that is handed out",
        """
class Clusters(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.prototypes = nn.Linear(5, 4), nn.Linear(4, 3, bias=False)
    def scores(self, x):
        return self.prototypes(F.normalize(self.enc(x), dim=1))
    @torch.no_grad()
    def unit(self):
        self.prototypes.weight.copy_(F.normalize(self.prototypes.weight, dim=1))
    def loss(self, x):
        scores = self.scores(x)
        self.unit()
        return F.log_softmax(scores, dim=1).mean()
net = Clusters()
# %%
loss = net.loss(torch.rand(6, 5))
loss.backward()
""",
        "saved_value_overwritten",
        (),
    ),
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
        "a derivative is taken under the user's own decorator, of what a call of torch made",
        """
net = nn.Linear(4, 1)
@torch.no_grad()
def adapt(x, y):
    fast = dict(net.named_parameters())
    error = (torch.func.functional_call(net, fast, (x,)) - y).square().mean()
    slopes = torch.autograd.grad(error, list(fast.values()), create_graph=True)
    return {k: p - 0.1 * g for (k, p), g in zip(fast.items(), slopes)}
# %%
fast = adapt(torch.rand(3, 4), torch.rand(3, 1))
torch.func.functional_call(net, fast, (torch.rand(3, 4),)).sum().backward()
assert net.weight.grad is not None
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
        "a hook that keeps what a later layer writes in place",
        """
seen = []
def keep(module, inputs, output):
    seen[:] = []
    seen.append(output)
net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Linear(4, 1))
net[0].register_forward_hook(keep)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
# %%
for _ in range(2):
    loss = net(torch.rand(6, 4)).square().mean() + seen[0].square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
        "silent_overwrite",
        ("seen.append(output.clone())",),
        watched=True,
    ),
    Program(
        "averaged weights put into the model for a look before backward",
        """
net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
mean = [p.detach().clone() * 0.5 for p in net.parameters()]
opt = torch.optim.SGD(net.parameters(), lr=0.1)
def look(model, x):
    for p, m in zip(model.parameters(), mean):
        p.data.copy_(m)
    return model(x).detach()
# %%
x, seen = torch.rand(6, 4), []
for _ in range(2):
    loss = net(x).square().mean()
    seen.append(look(net, x))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
        "silent_overwrite",
        ("import copy", "seen.append(look(copy.deepcopy(net), x))"),
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
    Program(
        "the gradient of one row of a matrix is asked of the row",
        """
emb = torch.rand(5, 3, requires_grad=True)
emb[torch.tensor([0, 2])].square().sum().backward()
# %%
sizes = [float(emb[i].grad.norm()) for i in (0, 2)]
assert min(sizes) > 0
""",
        "intermediate_grad",
        ("sizes = [float(emb.grad[i].norm()) for i in (0, 2)]",),
    ),
    Program(
        "an array made a tensor by from_numpy is given to an optimizer",
        """
import numpy as np
def fit(start):
    shift = torch.from_numpy(start)
    loss = (shift - 1).square().sum()
    loss.backward()
    return shift.grad
# %%
assert fit(np.zeros(2)).tolist() == [-2, -2]
""",
        "graph_cut",
        ("shift = torch.from_numpy(start).requires_grad_()",),
    ),
    Program(
        "what is computed again is read before the line that fails, too",
        """
def collect(net):
    return net(torch.ones(2, 3)).squeeze(1)
torch.manual_seed(0)
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
# %%
value = collect(net)
# %%
for _ in range(2):
    size = len(value)
    loss = (value - 1).square().sum() / size
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
        "second_backward",
        (),  # the line moves
    ),
    Program(
        "two parts of one saved result, each written under a name of its own",
        """
gates = nn.Linear(3, 4)
def cell(x):
    both = torch.sigmoid(gates(x))
    keep, take = both[:, :2], both[:, 2:]
    keep *= 0.9
    take -= 0.1
    return (keep * take).sum()
# %%
loss = cell(torch.rand(5, 3))
loss.backward()
""",
        "saved_value_overwritten",
        ("keep, take = both[:, :2].clone(), both[:, 2:]", "take = take - 0.1"),
    ),
    Program(
        "a parameter wrapped again on the way into a library's function",
        """
class Align(nn.Module):
    def __init__(self):
        super().__init__()
        self.angle = nn.Parameter(torch.full((1, 2, 3), 0.5))
    def forward(self, image):
        theta = torch.tensor(self.angle)
        grid = F.affine_grid(theta, image.shape)
        return F.grid_sample(image, grid)
net = Align()
# %%
net(torch.rand(1, 1, 4, 4)).sum().backward()
assert net.angle.grad is not None
""",
        "tensor_from_tensor",
        ("theta = self.angle.clone()",),
    ),
    Program(
        "a window computed of a trained width in the constructor is wrapped as a frozen parameter",
        """
class Smooth(nn.Module):
    def __init__(self, taps=5):
        super().__init__()
        self.width, self.gain = nn.Parameter(torch.tensor(1.0)), nn.Parameter(torch.ones(1))
        at = torch.arange(taps) - taps // 2
        self.taps = nn.Parameter(torch.exp(-(at / self.width) ** 2), requires_grad=False)
    def forward(self, x):
        return self.gain * F.conv1d(x, self.taps[None, None] / self.taps.sum())
net, x = Smooth(), torch.rand(2, 1, 9)
opt = torch.optim.SGD(net.parameters(), 0.1)
# %%
for _ in range(3):
    opt.zero_grad()
    (net(x) - 1).square().mean().backward()
    opt.step()
""",
        "silent_cut",
        (
            "self._taps = (taps,)",
            "@property",
            "def taps(self):",
            "at = torch.arange(self._taps[0]) - self._taps[0] // 2",
            "return torch.exp(-(at / self.width) ** 2)",
        ),
        watched=True,
    ),
    Program(
        "a prompt that another net makes is handed to a module of each round as a parameter",
        """
maker = nn.Linear(3, 4)
class Prompt(nn.Module):
    def __init__(self, first):
        super().__init__()
        self.first = nn.Parameter(first)
    def forward(self, x):
        return x + self.first
head, x = nn.Linear(4, 1), torch.rand(6, 3)
opt = torch.optim.SGD([*maker.parameters(), *head.parameters()], 0.1)
# %%
for _ in range(4):
    opt.zero_grad()
    head(Prompt(maker(x))(x.mean())).square().mean().backward()
    opt.step()
""",
        "silent_cut",
        ("self.first = first",),
        watched=True,
    ),
    Program(
        "a helper makes tensors of lists and copies a learned field",
        """
class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.grid, self.scale = nn.Parameter(torch.full((4,), 0.5)), nn.Parameter(torch.ones(1))
    def _values(self, given):
        return torch.tensor(given, dtype=torch.float64)
    def forward(self, weights):
        return (self._values(self.grid) * self._values(weights)).sum() * self.scale
field = Field()
# %%
field([0.1, 0.2, 0.3, 0.4]).backward()
assert field.grid.grad is not None
""",
        "tensor_from_tensor",
        ("return torch.as_tensor(given, dtype=torch.float64).clone()",),
    ),
    Program(
        "a helper hands its options on",
        """
from torch import tensor
def as_row(x, **options):
    return tensor(x, **options).view(1, -1)
pose = torch.rand(3, requires_grad=True)
import torch as th
# %%
loss = (as_row(pose, dtype=torch.float64) ** 2).sum() + pose.sum()
loss.backward()
""",
        "tensor_from_tensor",
        ("return th.as_tensor(x, **options).clone().view(1, -1)",),
    ),
    Program(
        "a computed weight wrapped again in a helper, below it only the copy is used",
        """
raw = torch.zeros(3, requires_grad=True)
def weights():
    soft = raw.softmax(0)
    soft = torch.tensor(soft)
    return soft / soft.max()
# %%
loss = ((weights() * torch.tensor([1.0, 2.0, 4.0])).sum() - 1) ** 2
loss.backward()
""",
        "tensor_from_tensor",
        ("soft = soft.clone()",),
    ),
    Program(
        "a copy that the value is compared with is meant to be apart",
        """
code = nn.Linear(3, 3)
def commitment(x):
    z = code(x)
    aim = torch.tensor(z)
    return ((z - aim.round()) ** 2).mean()
# %%
commitment(torch.rand(4, 3)).backward()
""",
        "tensor_from_tensor",
        ("aim = z.detach().clone()",),
    ),
    Program(
        "a normed weight is frozen in each block",
        """
from torch.nn.utils.parametrizations import spectral_norm, weight_norm
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = weight_norm(nn.Linear(3, 3)), spectral_norm(nn.Linear(3, 3))
    def forward(self, x):
        return self.b(self.a(x))
net = nn.Sequential(Block(), Block(), nn.Linear(3, 1))
# %%
for block in net[:2]:
    block.a.weight.requires_grad = False
    block.b.weight.requires_grad_(False)
net(torch.rand(2, 3)).sum().backward()
assert net[0].a.bias.grad is not None
assert net[0].a.parametrizations.weight.original0.grad is None
assert net[1].b.parametrizations.weight.original.grad is None
""",
        "requires_grad_on_non_leaf",
        (
            "block.a.parametrizations.weight.requires_grad_(False)",
            "block.b.parametrizations.weight.requires_grad_(False)",
        ),
    ),
    Program(
        "hooks compute the weights before each pass",
        """
from torch.nn.utils import prune
conv, head = torch.nn.utils.weight_norm(nn.Linear(3, 3)), nn.Linear(3, 1)
prune.random_unstructured(head, "weight", 0.5)
# %%
def freeze():
    conv.weight.requires_grad = False
    head.weight.requires_grad = False
freeze()
head(conv(torch.rand(2, 3))).sum().backward()
assert conv.weight_g.grad is None and conv.weight_v.grad is None and head.weight_orig.grad is None
""",
        "requires_grad_on_non_leaf",
        (
            "conv.weight_g.requires_grad_(False)",
            "conv.weight_v.requires_grad_(False)",
            "head.weight_orig.requires_grad_(False)",
        ),
    ),
    Program(
        "the weights of a list are frozen in a loop",
        """
conv = torch.nn.utils.parametrizations.weight_norm(nn.Linear(3, 3))
head = nn.Linear(3, 1)
# %%
for p in (conv.weight, conv.bias):
    p.requires_grad = False
head(conv(torch.rand(2, 3))).sum().backward()
assert not any(p.requires_grad for p in conv.parameters())
""",
        "requires_grad_on_non_leaf",
        ("for p in (*conv.parametrizations.weight.parameters(), conv.bias):",),
    ),
    Program(
        "a property computes the weight",
        """
class Positive(nn.Module):
    def __init__(self):
        super().__init__()
        self.raw, self.bias = nn.Parameter(torch.zeros(3)), nn.Parameter(torch.zeros(3))
    @property
    def weight(self):
        return F.softplus(self.raw)
    def forward(self, x):
        return x * self.weight + self.bias
net = Positive()
# %%
net.weight.requires_grad = False
net(torch.rand(2, 3)).sum().backward()
assert net.raw.grad is None
""",
        "requires_grad_on_non_leaf",
        ("net.raw.requires_grad_(False)",),
    ),
    Program(
        "a property of a plain object computes from two leaves",
        """
class Noise:
    def __init__(self):
        self.low, self.log_width = torch.rand(2, requires_grad=True), torch.rand(2).requires_grad_()
        self.floor, self.part = 0.1, nn.Sigmoid()
    @property
    def scale(self):
        return self.low + self.part(self.log_width) + self.floor
# %%
noise, other = Noise(), torch.ones(2, requires_grad=True)
noise.scale.requires_grad_(False)
(noise.scale * other).sum().backward()
assert noise.low.grad is None and noise.log_width.grad is None
""",
        "requires_grad_on_non_leaf",
        ("noise.low.requires_grad_(False)", "noise.log_width.requires_grad_(False)"),
    ),
    Program(
        "a part of a parameter",
        """
def freeze(conv):
    conv.weight[:, 0].requires_grad = False
# %%
conv = nn.Conv1d(2, 2, 1)
freeze(conv)
conv(torch.rand(2, 2, 3)).sum().backward()
assert not conv.weight.grad[:, 0].any() and conv.weight.grad[:, 1].all()
""",
        "requires_grad_on_non_leaf",
        (
            "trained = conv.weight.new_ones(conv.weight.shape, dtype=bool)",
            "trained[:, 0] = False",
            "conv.weight.register_hook(lambda grad, trained=trained: grad * trained)",
        ),
    ),
    Program(
        "rows of an embedding with sparse gradients",
        """
words = nn.EmbeddingBag(6, 3, mode="sum", sparse=True)
words.weight[:4].requires_grad = False
words(torch.tensor([[1, 5, 5]])).sum().backward()
grad = words.weight.grad.to_dense()
assert not grad[:4].any() and (grad[5] == 2).all()
""",
        "requires_grad_on_non_leaf",
        (
            "new_trained = words.weight.new_ones(words.weight.shape, dtype=bool)",
            "new_trained[:4] = False",
            "words.weight.register_hook(lambda grad, new_trained=new_trained: grad * new_trained)",
        ),
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


@pytest.mark.parametrize("value", ["self.a * self.other()", "self.net(self.a)", "self.kept"])
def test_no_flag_and_no_cut_where_a_property_may_compute_from_more(value: str) -> None:
    text = f"""
class Weights(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.net = *(nn.Parameter(torch.ones(2)) for _ in "ab"), nn.Linear(2, 2)
        self.kept = self.a * 2
    def other(self):
        return self.b
    @property
    def value(self):
        return {value}
weights = Weights()
# %%
weights.value.requires_grad = False
"""
    found = play(cells_of(TORCH + "# %%" + text)).diagnosis
    assert found is not None and found.finding.cause == "requires_grad_on_non_leaf"
    assert not found.rewrites


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
    """Nobody thaws them; the call that froze the one whose turn it is is blamed."""
    cells = cells_of(TORCH + "# %%" + IN_TURN)
    found = play(cells).diagnosis
    assert found is not None and found.finding.cause == "graph_cut"
    cause = found.finding.event(What.CAUSE)
    assert cause is not None and cause.place is not None
    assert cause.place.source == "freeze(b)"
    repaired = edited(cells, found.rewrites[0])
    assert "    freeze(b)\n    a.requires_grad_(True)\n" in repaired[1]
    assert "    freeze(a)\n    b.requires_grad_(True)\n" in repaired[1]
    run(repaired)
