"""Graphs that go backward twice: what each program is taken for, the line its rewrite brings in.

A row is a notebook (cells split by `# %%`), the cause, its variant, and a line that the first
rewrite brings in ("" where none is honest).
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from knowledge.played import edited, explained, play
from knowledge.test_cases import run
from notebook import installed

from autograd_explain.model import What
from autograd_explain.render.topic_content import cells_of

HEAD = """# %%
import torch
from torch import nn
torch.manual_seed(0)
# %%
"""

STEPS_IN_ROUNDS = """for _ in range(3):
    for _ in range(2):
        out, states = step(torch.randn(2, 3), states)
    loss = out.square().mean()
    loss.backward()
"""

PROGRAMS = {
    "what one call of a statement computes, and the loop of another only reads": (
        """
class Rollout:
    def __init__(self):
        self.kept = []
    def add(self, value):
        self.kept.append(value)
    def get(self):
        return {"old": torch.stack(self.kept), "x": torch.ones(4, 3)}
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
# %%
def collect(n):
    rollout = Rollout()
    for _ in range(n):
        rollout.add(net(torch.ones(3)).tanh().squeeze())
    return rollout.get()
# %%
def update(data):
    for _ in range(3):
        ratio = (net(data["x"]).tanh().squeeze(1) - data["old"]).exp()
        loss = ratio.mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item()
# %%
for _ in range(2):
    print(update(collect(4)))
""",
        "second_backward",
        "computed_once",
        "    data['old'] = data['old'].detach()",
    ),
    "one object that two calls hand out, with the second's values": (
        """
class Policy:
    def given(self, mean):
        self.normal = torch.distributions.Normal(mean, 1.0)
        return self
policy, net = Policy(), nn.Linear(3, 2)
def act(obs):
    return policy.given(net(obs))
# %%
pi = act(torch.randn(4, 3))
mirrored = act(torch.randn(4, 3))
(-pi.normal.log_prob(torch.zeros(2)).mean()).backward()
(-mirrored.normal.log_prob(torch.ones(2)).mean()).backward()
""",
        "second_backward",
        "one_object",
        "pi = copy.copy(act(torch.randn(4, 3)))",
    ),
    "a sum that grows in place from a number, whose step writes what each round saved": (
        """
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
# %%
total = 0.0
for x in torch.randn(3, 5, 3):
    loss = net(x).square().mean()
    total += loss
    total.backward()
    opt.step()
""",
        "second_backward",
        "carried",
        "    total = total.detach()",
    ),
    "such an object, where the first loss was of its own values": (
        """
class Policy:
    def given(self, mean):
        self.normal = torch.distributions.Normal(mean, 1.0)
        return self
policy, net = Policy(), nn.Linear(3, 2)
def act(obs):
    return policy.given(net(obs))
# %%
pi = act(torch.randn(4, 3))
first = -pi.normal.log_prob(torch.zeros(2)).mean()
mirrored = act(torch.randn(4, 3))
second = -mirrored.normal.log_prob(torch.ones(2)).mean()
third = mirrored.normal.mean.square().mean()
(first + second).backward()
third.backward()
""",
        "second_backward",
        "same_loss",
        "(first + second).backward(retain_graph=True)",
    ),
    "what every round compares itself with, beside what it needs anew": (
        """
pi, vf = nn.Linear(4, 2), nn.Linear(4, 1)
opt = torch.optim.SGD([*pi.parameters(), *vf.parameters()], lr=0.1)
obs, act, ret = torch.randn(6, 4), torch.tensor([0, 1, 0, 1, 1, 0]), torch.randn(6)
# %%
adv = ret - vf(obs).squeeze(-1)
first = torch.distributions.Categorical(logits=pi(obs))
old = first.log_prob(act)
for _ in range(3):
    dist = torch.distributions.Categorical(logits=pi(obs))
    ratio = (dist.log_prob(act) - old).exp()
    loss = adv.square().mean() - (ratio * adv.detach()).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
        "second_backward",
        "computed_once",
        "old = first.log_prob(act).detach()",
    ),
    "what a container holds that every round only reads, beside results that no loss uses": (
        """
raw = {"a": torch.zeros((), requires_grad=True), "b": torch.ones((), requires_grad=True)}
series = torch.randn(60)
def fitted(series, a, b):
    level, slope, found = series[0], series[1], []
    for y in series[1:]:
        found.append(level + slope)
        new = a * y + (1 - a) * (level + slope)
        slope = b * (new - level) + (1 - b) * slope
        level = new
    return torch.stack(found)
# %%
rates = {name: torch.sigmoid(r) for name, r in raw.items()}
opt = torch.optim.Adam(raw.values(), lr=0.1)
# %%
for _ in range(3):
    opt.zero_grad()
    loss = nn.functional.mse_loss(fitted(series, rates["a"], rates["b"]), series[1:])
    loss.backward()
    opt.step()
""",
        "second_backward",
        "computed_once",
        "    rates = {name: torch.sigmoid(r) for name, r in raw.items()}",
    ),
    "results kept in the input of the next round": (
        """
from types import SimpleNamespace
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin1, self.lin2 = nn.Linear(3, 3), nn.Linear(3, 3)
    def forward(self, batch):
        batch.feat = self.lin1(batch.feat).relu()
        batch.feat = self.lin2(batch.feat)
        return batch
net = Encoder()
# %%
data = SimpleNamespace(feat=torch.randn(4, 3), y=torch.randn(4, 3))
for _ in range(3):
    out = net(data)
    loss = (out.feat - out.y).square().mean()
    loss.backward()
""",
        "second_backward",
        "carried",
        "        batch = copy.copy(batch)",
    ),
    "a state that a function returns and is given again": (
        """
from types import SimpleNamespace
net = nn.Linear(3, 3)
def step(state, x):
    state.h = torch.tanh(net(x) + state.h)
    return state
# %%
state = SimpleNamespace(h=torch.zeros(4, 3))
for _ in range(3):
    state = step(state, torch.randn(4, 3))
    loss = state.h.square().mean()
    loss.backward()
""",
        "second_backward",
        "carried",
        "    state.h = state.h.detach()",
    ),
    "two states that the loop unpacks and a loop inside makes": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.out = nn.LSTMCell(1, 3), nn.Linear(3, 1)
    def forward(self, x, h, c):
        for t in range(x.size(1)):
            h, c = self.cell(x[:, t], (h, c))
        return self.out(h), h, c
net = Net()
# %%
h0, c0 = torch.zeros(2, 3), torch.zeros(2, 3)
for _ in range(3):
    pred, h0, c0 = net(torch.randn(2, 4, 1), h0, c0)
    loss = pred.pow(2).mean()
    loss.backward()
""",
        "second_backward",
        "carried",
        "    c0 = c0.detach()",
    ),
    "two states of an object": (
        """
class Filter(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.tensor(0.5))
        self.mean, self.spread = torch.zeros(2), torch.ones(2)
    def update(self, y):
        self.mean = self.mean + self.gain * (y - self.mean)
        self.spread = self.spread * self.gain
        return (y - self.mean).pow(2).sum() / self.spread.sum()
kalman = Filter()
# %%
for y in torch.randn(3, 2):
    nll = kalman.update(y)
    nll.backward()
""",
        "second_backward",
        "carried",
        "    kalman.mean = kalman.mean.detach()",
    ),
    "two caches of an object that grow from round to round": (
        """
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.k, self.v = nn.Linear(3, 9), None, None
    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        self.k = k if self.k is None else torch.cat([self.k, k])
        self.v = v if self.v is None else torch.cat([self.v, v])
        return (q @ self.k.t()).softmax(-1) @ self.v
layer = Attention()
# %%
for x in torch.randn(3, 2, 3):
    loss = layer(x).square().mean()
    loss.backward()
""",
        "second_backward",
        "carried",
        "    layer.v = layer.v.detach()",
    ),
    "a state of each layer": (
        """
class Leaky(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.fc, self.mem = nn.Linear(i, o), torch.zeros(2, o)
    def forward(self, x):
        self.mem = 0.9 * self.mem + self.fc(x)
        return torch.sigmoid(self.mem)
net = nn.Sequential(Leaky(3, 4), nn.ReLU(), Leaky(4, 1))
# %%
for _ in range(3):
    out = sum(net(x) for x in torch.randn(3, 2, 3))
    loss = out.square().mean()
    loss.backward()
""",
        "second_backward",
        "carried",
        "            item.mem = item.mem.detach()",
    ),
    "a mean of each loss, in objects of a dictionary": (
        """
class Mean:
    def __init__(self):
        self.value = None
    def update(self, new):
        self.value = new if self.value is None else 0.9 * self.value + 0.1 * new
        return self.value
means, net = {"a": Mean(), "b": Mean()}, nn.Linear(3, 2)
# %%
for x in torch.randn(3, 4, 3):
    losses = dict(zip(means, net(x).square().mean(0)))
    loss = sum(l / means[name].update(l) + l for name, l in losses.items())
    loss.backward()
""",
        "second_backward",
        "carried",
        "        item.value = item.value.detach()",
    ),
    "a list that every round makes anew": (
        """
net = nn.Linear(3, 1)
mean = [p.clone() for p in net.parameters()]
# %%
for _ in range(3):
    loss = net(torch.randn(4, 3)).mean() + sum(m.square().sum() for m in mean)
    loss.backward()
    mean = [0.9 * m + 0.1 * p for m, p in zip(mean, net.parameters())]
""",
        "second_backward",
        "carried",
        "    mean = [t.detach() for t in mean]",
    ),
    "a list of pairs that a loop inside carries": (
        """
cells = nn.ModuleList([nn.LSTMCell(3, 4), nn.LSTMCell(4, 4)])
def step(x, states):
    new = []
    for cell, state in zip(cells, states):
        new.append(cell(x, state))
        x = new[-1][0]
    return x, new
# %%
states = [(torch.zeros(2, 4), torch.zeros(2, 4)) for _ in cells]
"""
        + STEPS_IN_ROUNDS,
        "second_backward",
        "carried",
        "    states = [tuple(t.detach() for t in s) for s in states]",
    ),
    "a dictionary that a loop inside carries": (
        """
cells = nn.ModuleDict({"low": nn.GRUCell(3, 4), "high": nn.GRUCell(4, 4)})
def step(x, states):
    new = {}
    for name, cell in cells.items():
        new[name] = x = cell(x, states[name])
    return x, new
# %%
states = {name: torch.zeros(2, 4) for name in cells}
"""
        + STEPS_IN_ROUNDS,
        "second_backward",
        "carried",
        "    states = {k: t.detach() for k, t in states.items()}",
    ),
    "a loss of the old value, where the new one is read nowhere": (
        """
net, crit = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)), nn.CrossEntropyLoss()
x, y = torch.randn(5, 3, requires_grad=True), torch.tensor([0, 1, 0, 1, 1])
# %%
out = net(x)
crit(out, y).backward()
x_adv = x + 0.1 * x.grad.sign()
adv = net(x_adv)
loss = crit(out, y)
loss.backward()
""",
        "second_backward",
        "unread",
        "loss = crit(adv, y)",
    ),
    "what is read nowhere was computed of something else, or without a graph": (
        """
net, crit = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)), nn.CrossEntropyLoss()
x, x_val, y = torch.randn(5, 3), torch.randn(5, 3), torch.tensor([0, 1, 0, 1, 1])
# %%
out = net(x)
crit(out, y).backward()
val = net(x_val)
with torch.no_grad():
    probe = net(x)
loss = out.square().mean()
loss.backward()
""",
        "second_backward",
        "shared",
        "crit(out, y).backward(retain_graph=True)",
    ),
    "parts of what was computed once, which the loop goes through": (
        """
enc, head = nn.Linear(5, 4), nn.Linear(4, 1)
x, y = torch.randn(6, 5), torch.randn(6, 1)
# %%
coded = torch.relu(enc(x))
chunks = coded.chunk(3)
for _ in range(2):
    for k, (c, t) in enumerate(zip(chunks, y.chunk(3))):
        loss = (head(c) - t).pow(2).mean()
        loss.backward()
""",
        "second_backward",
        "computed_once",
        "",
    ),
    "parts of what was computed once, in an order of each epoch's own": (
        """
import random
enc, head = nn.Linear(5, 4), nn.Linear(4, 1)
x, y = torch.randn(6, 5), torch.randn(6, 1)
# %%
coded = torch.relu(enc(x))
chunks = list(zip(coded.chunk(3), y.chunk(3)))
for _ in range(2):
    random.shuffle(chunks)
    for c, t in chunks:
        loss = (head(c) - t).pow(2).mean()
        loss.backward()
""",
        "second_backward",
        "computed_once",
        "",
    ),
    "a weight whose own loss goes back in each step, kept for a loss of all steps": (
        """
pi, vf = nn.Linear(4, 2), nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
opt = torch.optim.SGD(vf.parameters(), lr=0.1)
terms = []
# %%
for _ in range(3):
    obs = torch.randn(5, 4)
    gap = 1.0 - vf(obs).squeeze(1)
    value_loss = gap.square().mean()
    opt.zero_grad()
    value_loss.backward()
    opt.step()
    chosen = pi(obs).log_softmax(1)[:, 0]
    terms.append(-(chosen * gap).mean())
# %%
loss = torch.stack(terms).sum()
loss.backward()
""",
        "second_backward",
        "shared_stepped",
        "    terms.append(-(chosen * gap.detach()).mean())",
    ),
    "a state behind several statements on a line": (
        """
cell, opt = nn.GRUCell(3, 4), None
# %%
h = torch.zeros(2, 4)
for _ in range(3):
    h = cell(torch.randn(2, 3), h); loss = h.square().mean(); loss.backward(); cell.zero_grad()
""",
        "second_backward",
        "carried",
        "    h = cell(torch.randn(2, 3), h); loss = h.square().mean(); loss.backward(); "
        "h = h.detach(); cell.zero_grad()",
    ),
    "a state that gets its next value behind the backward": (
        """
w = nn.Parameter(torch.rand(3, 3))
def roll(h, steps):
    for _ in range(steps):
        h = torch.tanh(h @ w)
    return h
# %%
h = torch.ones(1, 3)
for _ in range(3):
    after = roll(h, 4)
    loss = after.sum()
    loss.backward()
    h = after
""",
        "second_backward",
        "carried",
        "    h = after.detach()",
    ),
    "two states that a loop hands to the function that goes backward": (
        """
cell, out = nn.LSTMCell(1, 3), nn.Linear(3, 1)
def train_step(x, h, c):
    for t in range(x.size(1)):
        h, c = cell(x[:, t], (h, c))
    out(h).pow(2).mean().backward()
    return h, c
# %%
h, c = torch.zeros(2, 3), torch.zeros(2, 3)
for _ in range(3):
    h, c = train_step(torch.randn(2, 4, 1), h, c)
""",
        "second_backward",
        "carried",
        "    c = c.detach()",
    ),
    "a state that a loop hands to the function that goes backward": (
        """
cell, out = nn.GRUCell(1, 3), nn.Linear(3, 1)
def train_step(x, h):
    for t in range(x.size(1)):
        h = cell(x[:, t], h)
    out(h).pow(2).mean().backward()
    return h
# %%
hidden = torch.zeros(2, 3)
for _ in range(3):
    hidden = train_step(torch.randn(2, 4, 1), hidden)
""",
        "second_backward",
        "carried",
        "    h = h.detach()",
    ),
    "gradient penalty that the loss adds up": (
        """
critic = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
real = torch.randn(5, 2)
def penalty(pred, x):
    (g,) = torch.autograd.grad(outputs=pred.sum(), inputs=x)
    return (g.norm(dim=1) - 1).pow(2).mean()
# %%
for _ in range(2):
    x = real.clone().requires_grad_()
    pred = critic(x)
    losses = {"real": -pred.mean()}
    losses["penalty"] = penalty(pred, x)
    sum(losses.values()).backward()
""",
        "second_backward",
        "derivative",
        "    (g,) = torch.autograd.grad(outputs=pred.sum(), inputs=x, create_graph=True)",
    ),
    "derivatives of a residual, the second of which fails": (
        """
net = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
x, y = torch.rand(2, 5, 1).requires_grad_().unbind()
def d(u, s):
    return torch.autograd.grad(u, s, torch.ones_like(u))[0]
def residual(x, y):
    u = net(torch.cat([x, y], 1))
    return d(u, x) + u * d(u, y)
# %%
for _ in range(2):
    loss = residual(x, y).pow(2).mean()
    loss.backward()
""",
        "second_backward",
        "derivative",
        "    return torch.autograd.grad(u, s, torch.ones_like(u), create_graph=True)[0]",
    ),
    "adversarial example: a step, and no term of the loss": (
        """
net = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
x = torch.rand(5, 2, requires_grad=True)
# %%
clean = net(x).pow(2).mean()
g = torch.autograd.grad(clean, x)[0]
(clean + net(x + 0.1 * g.sign()).pow(2).mean()).backward()
""",
        "second_backward",
        "shared",
        "g = torch.autograd.grad(clean, x, retain_graph=True)[0]",
    ),
    "derivative that weighs a term, detached": (
        """
net = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
x = torch.rand(5, 2, requires_grad=True)
# %%
pred = net(x)
weight = torch.autograd.grad(pred.sum(), x)[0].norm().detach()
(weight * pred.pow(2).mean()).backward()
""",
        "second_backward",
        "shared",
        "weight = torch.autograd.grad(pred.sum(), x, retain_graph=True)[0].norm().detach()",
    ),
    "two gradients whose norms weigh a loss": (
        """
def weight(nll, fooled, last):
    a = torch.autograd.grad(nll, last)[0]
    b = torch.autograd.grad(fooled, last)[0]
    return (a.norm() / (b.norm() + 1e-4)).detach()
net, judge = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 3)), nn.Linear(3, 1)
x, y = torch.rand(5, 2), torch.rand(5, 3)
# %%
made = net(x)
nll, fooled = (made - y).pow(2).mean(), judge(made).sigmoid().mean()
(nll + weight(nll, fooled, net[-1].weight) * fooled).backward()
""",
        "second_backward",
        "shared",
        "    b = torch.autograd.grad(fooled, last, retain_graph=True)[0]",
    ),
    "gradient norms of a loop that are trained towards each other": (
        """
trunk, heads = nn.Linear(2, 4), nn.ModuleList([nn.Linear(4, 1), nn.Linear(4, 1)])
weights, x = nn.Parameter(torch.ones(2)), torch.rand(5, 2)
# %%
h = torch.tanh(trunk(x))
losses = torch.stack([head(h).pow(2).mean() for head in heads])
norms = []
for w, loss in zip(weights, losses):
    g, = torch.autograd.grad(w * loss, trunk.weight)
    norms.append(g.norm())
norms = torch.stack(norms)
(norms - norms.mean().detach()).abs().sum().backward()
""",
        "second_backward",
        "derivative",
        "    g, = torch.autograd.grad(w * loss, trunk.weight, create_graph=True)",
    ),
    "gradient looked at by a function before backward": (
        """
def sizes(value, net):
    found = torch.autograd.grad(value, list(net.parameters()))
    return [g.norm().item() for g in found]
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(5, 3)
# %%
for it in range(3):
    loss = net(x).pow(2).mean()
    if it == 1:
        print(sizes(loss, net))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
        "second_backward",
        "same_loss",
        "    found = torch.autograd.grad(value, list(net.parameters()), retain_graph=True)",
    ),
    "gradient of the input first": (
        """
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
x = torch.randn(5, 3, requires_grad=True)
loss = net(x).pow(2).mean()
# %%
saliency = torch.autograd.grad(loss, x)[0]
loss.backward()
""",
        "second_backward",
        "same_loss",
        "saliency = torch.autograd.grad(loss, x, retain_graph=True)[0]",
    ),
    "backward twice in a row": (
        """
w = torch.ones(3, requires_grad=True)
loss = (w * w).sum()
# %%
loss.backward()
loss.backward()
""",
        "second_backward",
        "same_loss",
        "loss.backward(retain_graph=True)",
    ),
    "weights drawn once an epoch": (
        """
class Noisy(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = nn.Parameter(torch.randn(3, 1))
        self.spread = nn.Parameter(torch.zeros(3, 1))
    def sample(self):
        self.weight = self.mean + self.spread.exp() * torch.randn(3, 1)
    def forward(self, x):
        return x @ self.weight
net = Noisy()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
batches = torch.randn(4, 5, 3)
# %%
for epoch in range(2):
    net.sample()
    for x in batches:
        opt.zero_grad()
        net(x).pow(2).mean().backward()
        opt.step()
""",
        "second_backward",
        "computed_once",
        "        net.sample()",
    ),
    "mixing matrix of a function, once an epoch": (
        """
scores = torch.randn(4, 4, requires_grad=True)
def mixing():
    return scores.softmax(dim=1)
opt = torch.optim.SGD([scores], lr=0.1)
batches = torch.randn(3, 4, 2)
# %%
epoch = 0
while epoch < 2:
    mix = mixing()
    for x in batches:
        loss = (mix @ x).pow(2).sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
    epoch += 1
""",
        "second_backward",
        "computed_once",
        "        mix = mixing()",
    ),
    "function with a cache": (
        """
from functools import cache
scores = torch.randn(4, 4, requires_grad=True)
@cache
def mixing():
    return scores.softmax(dim=1)
opt = torch.optim.SGD([scores], lr=0.1)
batches = torch.randn(3, 4, 2)
# %%
for x in batches:
    loss = (mixing() @ x).pow(2).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
        "second_backward",
        "remembered",
        "def mixing():",
    ),
    "cached property": (
        """
from functools import cached_property
class Kernel(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.zeros(4))
    @cached_property
    def matrix(self):
        spread = self.scale.exp()
        return torch.outer(spread, spread)
kernel = Kernel()
opt = torch.optim.SGD(kernel.parameters(), lr=0.1)
# %%
for x in torch.randn(3, 4):
    loss = (kernel.matrix @ x).pow(2).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
        "second_backward",
        "remembered",
        "    @property",
    ),
    "computed in the constructor of a class that was defined again": (
        """
class Group(nn.Module):
    def __init__(self):
        super().__init__()
        self.raw = nn.Parameter(torch.zeros(3))
        self.spread = None
# %%
class Group(nn.Module):
    def __init__(self):
        super().__init__()
        self.raw = nn.Parameter(torch.zeros(3))
        self.spread = self.raw.exp()
    def nll(self, x):
        return (self.spread * x).pow(2).mean()
group = Group()
opt = torch.optim.SGD(group.parameters(), lr=0.1)
# %%
for x in torch.randn(3, 3):
    opt.zero_grad()
    loss = group.nll(x)
    loss.backward()
    opt.step()
""",
        "second_backward",
        "computed_once",
        "    def spread(self):",
    ),
    "attribute filled once": (
        """
class Graph(nn.Module):
    def __init__(self):
        super().__init__()
        self.logits = nn.Parameter(torch.randn(4, 4))
        self._adj = None
    def adjacency(self):
        if self._adj is None:
            weights = torch.sigmoid(self.logits)
            self._adj = weights / weights.sum(dim=1, keepdim=True)
        return self._adj
    def forward(self, x):
        return self.adjacency() @ x
graph = Graph()
opt = torch.optim.SGD(graph.parameters(), lr=0.1)
# %%
for x in torch.randn(3, 4, 2):
    loss = graph(x).pow(2).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
        "second_backward",
        "remembered",
        "        weights = torch.sigmoid(self.logits)",
    ),
    "dictionary of what was computed": (
        """
table = torch.randn(6, 3, requires_grad=True)
kept = {}
def positions(length):
    if length in kept:
        return kept[length]
    kept[length] = torch.tanh(table[:length])
    return kept[length]
opt = torch.optim.SGD([table], lr=0.1)
# %%
for x in torch.randn(3, 4, 3):
    loss = (x + positions(4)).pow(2).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
        "second_backward",
        "remembered",
        "    kept[length] = torch.tanh(table[:length])",
    ),
    "average that begins with the first value": (
        """
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
center = None
# %%
for x in torch.randn(3, 4, 3):
    out = net(x)
    if center is None:
        center = out.mean(dim=0).tanh()
    else:
        center = 0.9 * center + 0.1 * out.mean(dim=0).tanh()
    loss = (out * center).pow(2).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
        "second_backward",
        "carried",
        "    center = center.detach()",
    ),
    "memory bank of embeddings": (
        """
from collections import deque
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh())
opt = torch.optim.SGD(net.parameters(), lr=0.1)
class Bank:
    def __init__(self):
        self.rows = []
    def remember(self, name, rows):
        self.rows.append((name, rows * 2))
bank = Bank()
# %%
for number, x in enumerate(torch.randn(4, 5, 3)):
    z = net(x)
    loss = z.pow(2).mean()
    for _, old in bank.rows:
        loss = loss + (z @ old.t()).mean()
    bank.remember(number, z)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
        "second_backward",
        "carried",
        "        self.rows.append((name, (rows * 2).detach()))",
    ),
    "dictionary of earlier embeddings": (
        """
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh())
opt = torch.optim.SGD(net.parameters(), lr=0.1)
seen = {}
data = [(i % 2, torch.randn(5, 3)) for i in range(4)]
# %%
for user, x in data:
    z = net(x)
    loss = z.pow(2).mean()
    if user in seen:
        loss = loss + (z - seen[user]).pow(2).mean()
    seen[user] = z
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
        "second_backward",
        "carried",
        "    seen[user] = z.detach()",
    ),
    "list of this round's values never emptied": (
        """
net = nn.Sequential(nn.Linear(3, 1), nn.Sigmoid())
opt = torch.optim.SGD(net.parameters(), lr=0.1)
log_probs = []
# %%
for episode in range(3):
    for x in torch.randn(4, 3):
        log_probs.append(net(x).log())
    loss = -torch.stack(log_probs).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
        "second_backward",
        "carried",
        "    log_probs.clear()",
    ),
    "lists of an object that a method fills together": (
        """
net = nn.Sequential(nn.Linear(3, 1), nn.Sigmoid())
opt = torch.optim.SGD(net.parameters(), lr=0.1)
class Rollout:
    def __init__(self):
        self.logp, self.rewards = [], []
    def add(self, logp, reward):
        self.logp.append(logp)
        self.rewards.append(reward)
    def returns(self):
        return torch.tensor(self.rewards)
rollout, history = Rollout(), []
def learn():
    parts = []
    for logp, reward in zip(rollout.logp, rollout.returns()):
        parts.append(-logp * reward)
    loss = torch.stack(parts).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
    history.append(sum(rollout.rewards))
# %%
for episode in range(3):
    for x in torch.randn(4, 3):
        rollout.add(net(x).log(), float(x.sum()))
    learn()
""",
        "second_backward",
        "carried",
        "    rollout.rewards.clear()",
    ),
    "targets in a list of a shared function": (
        """
net = nn.Linear(3, 3)
def gram(rows):
    flat = net(rows)
    return flat.t() @ flat
targets = [gram(x) for x in torch.randn(2, 4, 3)]
picture = torch.randn(4, 3, requires_grad=True)
opt = torch.optim.SGD([picture], lr=0.1)
# %%
for step in range(3):
    loss = sum((gram(picture) - t).pow(2).mean() for t in targets)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
        "second_backward",
        "computed_once",
        "targets = [gram(x).detach() for x in torch.randn(2, 4, 3)]",
    ),
    "states handed to a buffer as keywords": (
        """
cell = nn.GRUCell(3, 2)
opt = torch.optim.SGD(cell.parameters(), lr=0.1)
class Replay:
    def __init__(self):
        self.items = []
    def push(self, **item):
        self.items.append(item)
replay, h = Replay(), torch.zeros(1, 2)
for x in torch.randn(4, 1, 3):
    replay.push(x=x, h=h)
    h = cell(x, h)
# %%
for epoch in range(2):
    loss = sum(cell(i["x"], i["h"]).pow(2).sum() for i in replay.items[1:])
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
        "second_backward",
        "computed_once",
        "    replay.push(x=x, h=h.detach())",
    ),
    "batch that a function returns": (
        """
policy = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
opt = torch.optim.SGD(policy.parameters(), lr=0.1)
def collect(x):
    return {"x": x, "old": policy(x).log_softmax(dim=1)}
batch = collect(torch.randn(5, 3))
# %%
for epoch in range(3):
    ratio = (policy(batch["x"]).log_softmax(dim=1) - batch["old"]).exp()
    loss = -ratio.mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
        "second_backward",
        "computed_once",
        '    return {"x": x, "old": policy(x).log_softmax(dim=1).detach()}',
    ),
    "losses of an inner loop kept for the outer one": (
        """
weights = torch.zeros(3, requires_grad=True)
def inner(x):
    net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    total = 0.0
    for k in range(3):
        loss = net(x).pow(2).mean()
        opt.zero_grad()
        loss.backward(retain_graph=True)
        opt.step()
        total = total + weights.softmax(0)[k]
        total += loss
    return total
# %%
for x in torch.randn(2, 4, 2):
    outer = inner(x)
    outer.backward()
""",
        "step_between_backwards",
        "",
        "        total += loss.detach()",
    ),
    "losses kept that nothing else feeds": (
        """
net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
curve = []
for x in torch.randn(3, 4, 2):
    loss = net(x).pow(2).mean()
    loss.backward(retain_graph=True)
    opt.step()
    curve.append(loss)
# %%
torch.stack(curve).sum().backward()
""",
        "step_between_backwards",
        "",
        "",
    ),
    "what a function writes into that which it is given": (
        """
class Fill(nn.Module):
    def __init__(self):
        super().__init__()
        self.default = nn.Parameter(torch.ones(3))
    def forward(self, rows):
        x = rows
        x[gone] = self.default[where]
        return x
rows, gone = torch.rand(4, 3), torch.rand(4, 3) < 0.5
where = gone.nonzero()[:, 1]
fill, net = Fill(), nn.Linear(3, 1)
opt = torch.optim.SGD([*fill.parameters(), *net.parameters()], lr=0.1)
# %%
for _ in range(3):
    loss = net(fill(rows)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
assert fill.default.grad is not None
""",
        "second_backward",
        "carried",
        "        x = x.clone()",
    ),
    "the layers of a subclass of nn.Sequential, whose result a list records": (
        """
class Encoder(nn.Sequential):
    def __init__(self, width):
        super().__init__(nn.Linear(3, width), nn.Tanh(), nn.Linear(width, 2))
enc, head = Encoder(4), nn.Linear(2, 1)
z = enc(torch.rand(5, 3))
record = [z]
# %%
for _ in range(3):
    loss = head(z).square().mean()
    loss.backward()
""",
        "second_backward",
        "computed_once",
        "    z = enc(torch.rand(5, 3))",
    ),
    "what the constructor of a part of the module computes": (
        """
class Filters(nn.Module):
    def __init__(self):
        super().__init__()
        self.low = nn.Parameter(torch.rand(3))
        self.bank = self.design()
    def design(self):
        return self.low.exp()
    def forward(self, x):
        return x * self.bank
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.front, self.head = Filters(), nn.Linear(3, 1)
    def forward(self, x):
        return self.head(self.front(x))
# %%
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    opt.zero_grad()
    net(torch.rand(4, 3)).mean().backward()
    opt.step()
""",
        "second_backward",
        "computed_once",
        "        return self.design()",
    ),
    "what several reentrant checkpoints read and are not given": (
        """
from torch.utils.checkpoint import checkpoint
class Conditioned(nn.Linear):
    def forward(self, x):
        return super().forward(x) * self.cond
encoder = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
layers = [Conditioned(4, 4) for _ in range(2)]
# %%
for _ in range(2):
    cond = encoder(torch.rand(5, 4))
    for layer in layers:
        layer.cond = cond
    h = torch.rand(5, 4, requires_grad=True)
    for layer in layers:
        h = checkpoint(layer, h, use_reentrant=True)
    loss = h.square().mean()
    loss.backward()
""",
        "second_backward",
        "carried",
        "        h = checkpoint(layer, h, use_reentrant=False)",
    ),
    "what a reentrant checkpoint reads of an earlier round": (
        """
from torch.utils.checkpoint import checkpoint
class Conditioned(nn.Linear):
    def forward(self, x):
        return super().forward(x) + self.seen
cell, store = Conditioned(4, 4), [torch.zeros(5, 4)]
# %%
for _ in range(3):
    seen = store[-1]
    cell.seen = seen
    x = torch.rand(5, 4, requires_grad=True)
    out = checkpoint(cell, x, use_reentrant=True).tanh()
    loss = out.square().mean()
    loss.backward()
    store.append(out)
""",
        "second_backward",
        "carried",
        "    cell.seen = seen.detach()",
    ),
}
# torch.compile leaves another nn.Module.__init__ behind.
_COMPILED = "double = torch.compile(lambda x: 2 * x, backend='eager')\ndouble(torch.ones(2))\n# %%"
PROGRAMS["after torch.compile"] = (
    _COMPILED + PROGRAMS["cached property"][0],
    *PROGRAMS["cached property"][1:],
)

PROGRAMS["parts of what a rollout keeps"] = (
    """
critic = nn.Linear(3, 1)
opt = torch.optim.SGD(critic.parameters(), lr=0.1)
def targets(data):
    value = critic(data["x"]).squeeze(1)
    advantage = torch.rand(6) - value * value.exp()
    return advantage, advantage + value
def parts(data):
    flat = {k: v.reshape(6, -1) for k, v in data.items()}
    for index in torch.arange(6).chunk(2):
        yield {k: v[index] for k, v in flat.items()}
def update(data):
    for _ in range(2):
        for part in parts(data):
            loss = ((critic(part["x"]) - part["target"]) * part["advantage"]).square().mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
for _ in range(2):
    data = {"x": torch.rand(6, 3)}
    data["advantage"], data["target"] = targets(data)
    update(data)
""",
    "second_backward",
    "computed_once",
    "    data['target'] = data['target'].detach()",
)
PROGRAMS["what a rollout keeps, by the name that the rounds read"] = (
    """
policy = nn.Linear(3, 2)
opt = torch.optim.SGD(policy.parameters(), lr=0.1)
obs, gain = torch.rand(4, 3), torch.rand(4)
# %%
logp = policy(obs).log_softmax(1)[:, 0]
old_logp = logp
# %%
for _ in range(3):
    ratio = (policy(obs).log_softmax(1)[:, 0] - old_logp).exp()
    loss = -(ratio * gain).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "second_backward",
    "computed_once",
    "old_logp = old_logp.detach()",
)
PROGRAMS["an average that each round updates behind its backward"] = (
    """
class Average:
    def __init__(self, net):
        self.kept = {n: p for n, p in net.named_parameters()}
    def update(self, net):
        for n, p in net.named_parameters():
            self.kept[n] = 0.9 * self.kept[n] + 0.1 * p
    def distance(self, net):
        return sum((p - self.kept[n]).square().sum() for n, p in net.named_parameters())
net = nn.Linear(3, 1)
average, opt = Average(net), torch.optim.SGD(net.parameters(), lr=0.1)
# %%
for _ in range(4):
    loss = net(torch.rand(4, 3)).square().mean() + average.distance(net)
    opt.zero_grad()
    loss.backward()
    opt.step()
    average.update(net)
""",
    "second_backward",
    "carried",
    "            self.kept[n] = (0.9 * self.kept[n] + 0.1 * p).detach()",
)
PROGRAMS["parts of what has to be trained"] = (
    """
encoder, head = nn.Linear(3, 4), nn.Linear(4, 1)
opt = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
def train(features):
    for _ in range(2):
        flat = features.view(-1, 4)
        for index in torch.arange(6).chunk(2):
            loss = head(flat[index]).square().mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
for _ in range(2):
    features = encoder(torch.rand(2, 3, 3)).exp()
    train(features)
""",
    "second_backward",
    "computed_once",
    "",
)


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    text, cause, variant, line = PROGRAMS[name]
    cells = cells_of(HEAD + text.lstrip())
    diagnosis = explained(cells)
    finding, rewrites = diagnosis.finding, diagnosis.rewrites
    assert (finding.cause, finding.variant) == (cause, variant)
    if not line:
        assert rewrites == ()
        return
    assert rewrites
    repaired = edited(cells, rewrites[0])
    assert line in [row for cell in repaired for row in cell.splitlines()]
    run(repaired)


SPIKES = """# %%
import torch
from torch import nn
class Spike(torch.autograd.Function):
    @staticmethod
    def forward(ctx, v):
        ctx.save_for_backward(v)
        return (v > 0).float()
    @staticmethod
    def backward(ctx, g):
        (v,) = ctx.saved_tensors
        return g / (1 + v.abs())
class Leaky(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mem", torch.zeros(4))
    def forward(self, x):
        self.mem = 0.9 * self.mem + x
        return Spike.apply(self.mem - 1)
inner, cell = nn.Linear(3, 4), Leaky()
# %%
for x in torch.randn(2, 3, 5, 3):
    cell.mem.zero_()
    loss = sum(cell(inner(part)).mean() for part in x)
    loss.backward()
"""


@pytest.mark.parametrize("watched", [False, True])
def test_a_functions_own_backward_is_not_where_it_failed(watched: bool) -> None:
    found = play(cells_of(SPIKES), watched=watched).diagnosis
    assert found is not None
    told = found.finding
    sources = {e.what: e.place.source for e in told.events if e.place is not None}
    assert told.variant == "carried"
    assert sources[What.CAUSE] == "self.mem = 0.9 * self.mem + x"
    assert sources[What.FAILED] == "loss.backward()"
    assert "    cell.mem = torch.zeros_like(cell.mem)" in found.rewrites[0].edits[0].new_source


TWICE = """# %%
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(4, 1)
x, y = torch.randn(16, 4), torch.randn(16, 1)
# %%
def step():
    loss = ((net(x) - y) ** 2).mean()
    loss.backward()
    return loss, y
def norm_of(loss):
    loss.backward()
    return net.weight.grad.norm().item()
# %%
loss = ((net(x) - y) ** 2).mean()
"""


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "last",
    ["loss, _ = step()\nloss.backward()", "norm = norm_of(loss)\nloss.backward()"],
    ids=["in what computes the loss", "in what needs the gradients at once"],
)
def test_one_loss_goes_backward_once(last: str) -> None:
    """With the graph kept every gradient would come twice, and equal a reference that has it so."""
    found = play(cells_of(TWICE + last), watched=True, verify=True).diagnosis
    assert found is not None
    assert not [e for r in found.rewrites for e in r.edits if "retain_graph" in e.new_source]
    repaired = run(edited(cells_of(TWICE + last), found.rewrites[0]))
    once = run(cells_of(TWICE + "loss.backward()"))
    torch.testing.assert_close(repaired["net"].weight.grad, once["net"].weight.grad)


def test_the_line_that_computed_what_the_loop_takes_apart_is_the_cause() -> None:
    name = "parts of what was computed once, which the loop goes through"
    finding = explained(cells_of(HEAD + PROGRAMS[name][0].lstrip())).finding
    cause = finding.place(What.CAUSE)
    assert cause is not None and cause.source == "coded = torch.relu(enc(x))"


PROTOTYPE = """
class Memory:
    proto = old = torch.zeros(4)
    def push(self, feats):
        mean = feats.mean(0)
        self.proto = 0.5 * self.proto + 0.5 * mean
memory, enc = Memory(), nn.Linear(3, 4)
h = torch.zeros(4)
# %%
for x in torch.randn(3, 6, 3):
    feats = {made}
    loss = (feats - memory.proto).square().mean()
    loss.backward()
    {pushed}
"""


@pytest.mark.parametrize(
    ("made", "pushed", "cause"),
    [
        ("enc(x).tanh()", "memory.push(feats)", "self.proto = 0.5 * self.proto + 0.5 * mean"),
        ("enc(x) * h", "h = feats[0]; memory.size = feats.norm()", "h = feats[0]"),
        ("enc(x) + h", "if x[0, 0] < 9:\n        h = feats[0]", "h = feats[0]"),
        ("enc(x) + memory.old", "memory.old = feats", "memory.old = feats"),
        ("h = enc(x) + h", "last = h", "feats = h = enc(x) + h"),
    ],
)
def test_what_hands_the_value_on_behind_the_backward(made: str, pushed: str, cause: str) -> None:
    """Not what merely reads the value there, which the next loss does not hang on."""
    cells = cells_of(HEAD + PROTOTYPE.lstrip().format(made=made, pushed=pushed))
    found = explained(cells).finding
    assert found.variant == "carried"
    place = found.place(What.CAUSE)
    assert place is not None and place.source.partition(";")[0] == cause


@pytest.mark.parametrize("scaled", ["loss", "loss / self.steps"])
def test_a_package_goes_backward_from_what_it_is_given(tmp_path: Path, scaled: str) -> None:
    """Nothing of the package is followed, as it does not know torch."""
    engine = "class Engine:\n    steps = 2\n    def backward(self, loss):\n        "
    engine += f"({scaled}).backward()"
    cells = cells_of(HEAD + PROGRAMS[GROWING][0].replace("total.backward()", BY_ENGINE).lstrip())
    with installed(tmp_path, "engines", engine):
        finding = explained(("from engines import Engine\nengine = Engine()", *cells)).finding
    sources = {e.what: e.place.source for e in finding.events if e.place is not None}
    assert (finding.variant, finding.facts["tensor"]) == ("carried", "total")
    assert (sources[What.CAUSE], sources[What.FREED]) == ("total += loss", BY_ENGINE)


GROWING = "a sum that grows in place from a number, whose step writes what each round saved"
BY_ENGINE = "engine.backward(total)"
