"""Random training programs that are correct: the recorder must neither change nor accuse them.

A program is text, made from a seed: data, a model, an optimizer and a loop with some of the habits
of real notebooks (accumulation, frozen parts, target networks, moving averages, metrics, clipping,
hooks, views, legal in-place operations).  It leaves `losses` and `model`.
"""

from __future__ import annotations

import random
from textwrap import indent

HEAD = """\
import copy
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
torch.manual_seed({seed})
losses = []
"""

ACTIVATIONS = (
    "nn.ReLU()",
    "nn.ReLU(inplace=True)",
    "nn.LeakyReLU(0.1, inplace=True)",
    "nn.Tanh()",
    "nn.Sigmoid()",
    "nn.GELU()",
    "nn.ELU(inplace=True)",
    "nn.Softplus()",
    "nn.Hardtanh(inplace=True)",
)

OPTIMIZERS = (
    "torch.optim.SGD({p}, lr=0.05)",
    "torch.optim.SGD({p}, lr=0.05, momentum=0.9, nesterov=True)",
    "torch.optim.SGD({p}, lr=0.05, foreach=True)",
    "torch.optim.SGD({p}, lr=0.05, weight_decay=0.01)",
    "torch.optim.Adam({p}, lr=0.01)",
    "torch.optim.Adam({p}, lr=0.01, foreach=True)",
    "torch.optim.Adam({p}, lr=0.01, fused=True)",
    "torch.optim.AdamW({p}, lr=0.01)",
    "torch.optim.RMSprop({p}, lr=0.01)",
    "torch.optim.Adagrad({p}, lr=0.05)",
)


def program(seed: int) -> str:
    """The program of a seed."""
    dice = random.Random(seed)
    family = dice.choice(FAMILIES)
    return HEAD.format(seed=seed) + family(dice)


def sequential(dice: random.Random) -> str:
    """A plain network with a plain or an accumulating loop."""
    width = dice.choice((4, 8))
    layers = []
    for _ in range(dice.randint(1, 3)):
        layers += [f"nn.Linear({width}, {width})", dice.choice(ACTIVATIONS)]
        if dice.random() < 0.3:
            layers.append(dice.choice((f"nn.BatchNorm1d({width})", f"nn.LayerNorm({width})")))
        if dice.random() < 0.3:
            layers.append(dice.choice(("nn.Dropout(0.2)", "nn.Dropout(0.2, inplace=True)")))
    layers.append(f"nn.Linear({width}, 2)")
    # An in-place layer after one that saves its result would be an error.
    layers = [_safe(a, b) for a, b in zip([""] + layers, layers)]
    frozen = dice.random() < 0.3
    parameters = "model.parameters()"
    text = f"model = nn.Sequential({', '.join(layers)})\n"
    if frozen:
        text += "for p in model[0].parameters():\n    p.requires_grad_(False)\n"
        parameters = dice.choice((parameters, "[p for p in model.parameters() if p.requires_grad]"))
    text += f"x, y = torch.randn(12, {width}), torch.randn(12, 2)\n"
    text += f"opt = {optimizer(dice, parameters)}\n"
    return text + loop(dice, "F.mse_loss(model(x), y)")


def _safe(before: str, layer: str) -> str:
    if "inplace" in layer and not before.startswith(("nn.Linear", "nn.LayerNorm", "nn.Batch")):
        return layer.replace(", inplace=True", "").replace("inplace=True", "")
    if "inplace" in layer and before.startswith(("nn.LayerNorm", "nn.Batch")):
        return layer
    return layer


def optimizer(dice: random.Random, parameters: str = "model.parameters()") -> str:
    return dice.choice(OPTIMIZERS).format(p=parameters)


def loop(dice: random.Random, loss: str, before: str = "", after: str = "") -> str:
    """A training loop around a loss expression, in one of several customary shapes."""
    clear = dice.choice(
        ("opt.zero_grad()", "opt.zero_grad(set_to_none=False)", "model.zero_grad()", CLEAR_BY_HAND)
    )
    body = [before, f"loss = {loss}"]
    if dice.random() < 0.2:
        body.append(
            "reg = sum(p.pow(2).sum() for p in model.parameters())\nloss = loss + 1e-3 * reg"
        )
    shape = dice.choice(("first", "last", "accumulate", "scheduler"))
    metrics = dice.choice(METRICS)
    clip = dice.choice(("", "", "nn.utils.clip_grad_norm_(model.parameters(), 1.0)", CLIP))
    if shape == "first":
        parts = [clear, *body, "loss.backward()", clip, "opt.step()", metrics, after]
    elif shape == "last":
        parts = [*body, "loss.backward()", clip, "opt.step()", clear, metrics, after]
    elif shape == "scheduler":
        parts = [clear, *body, "loss.backward()", clip, "opt.step()", "schedule.step()", metrics]
    else:
        step = indent(f"{clip or 'pass'}\nopt.step()\n{clear}", "    ")
        parts = [*body, "(loss / 2).backward()", f"if i % 2 == 1:\n{step}", metrics, after]
    head = ""
    if shape == "scheduler":
        head = "schedule = torch.optim.lr_scheduler.StepLR(opt, 2)\n"
    lines = "\n".join(p for p in parts if p)
    return f"{head}for i in range({dice.randint(2, 5)}):\n{indent(lines, '    ')}\n"


CLEAR_BY_HAND = """\
for p in model.parameters():
    if p.grad is not None:
        p.grad.zero_()"""
CLIP = """\
for p in model.parameters():
    if p.grad is not None:
        p.grad.clamp_(-1, 1)"""
METRICS = (
    "losses.append(loss.item())",
    "losses.append(float(loss.detach()))",
    "losses.append(loss.detach().numpy().copy().item())",
    "losses.append(loss.detach().clone())",
    "with torch.no_grad():\n    losses.append((loss * 2).item())",
    "model.eval()\nwith torch.no_grad():\n    losses.append(model(x).mean().item())\nmodel.train()",
)


def residual(dice: random.Random) -> str:
    """A module of the user's own with views, splits and legal in-place operations."""
    body = dice.choice(
        (
            "h = self.a(x)\nh = h + x\nh.relu_()\nreturn self.b(h)",
            "h = self.a(x)\nh += x\nreturn self.b(torch.tanh(h))",
            "left, right = self.a(x).chunk(2, dim=1)\nreturn self.b(torch.cat([left, right], 1))",
            "h = self.a(x).view(-1, 2, 4).transpose(1, 2).reshape(-1, 8)\nreturn self.b(h)",
            "h = self.a(x)\nout = torch.zeros_like(h)\nout[:, :4] = h[:, :4]\n"
            "out[:, 4:] = 2 * h[:, 4:]\nreturn self.b(out)",
            "h = self.a(x).clone()\nh[:, 0] = 0\nreturn self.b(h)",
            "h = F.dropout(self.a(x), 0.3, self.training)\nreturn self.b(F.relu(h, inplace=False))",
            "h = self.a(x)\nh.mul_(0.5).add_(1)\nreturn self.b(h)",
            "h = self.a(x)\nmask = h > 0\nreturn self.b(h.masked_fill(mask, 0.5))",
            "h = torch.utils.checkpoint.checkpoint(self.a, x, use_reentrant=False)\nreturn self.b(h)",
            "h = self.a(x)\nself.seen += 1\nself.mean.mul_(0.9).add_(0.1 * h.detach().mean(0))\n"
            "return self.b(h - self.mean.clone())",
            "h = self.a(x)\nwith torch.no_grad():\n    scale = h.abs().max()\nreturn self.b(h / scale)",
        )
    )
    text = f"""\
import torch.utils.checkpoint
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(8, 8)
        self.b = nn.Linear(8, 2)
        self.register_buffer("mean", torch.zeros(8))
        self.seen = 0
    def forward(self, x):
{indent(body, "        ")}
model = Net()
x, y = torch.randn(12, 8), torch.randn(12, 2)
opt = {optimizer(dice)}
"""
    return text + loop(dice, "F.mse_loss(model(x), y)")


def averaged(dice: random.Random) -> str:
    """A moving average or a target network beside the trained one."""
    update = dice.choice(
        (
            "with torch.no_grad():\n    for t, p in zip(target.parameters(), model.parameters()):\n"
            "        t.lerp_(p, 0.1)",
            "for t, p in zip(target.parameters(), model.parameters()):\n"
            "    t.data.mul_(0.9).add_(p.data, alpha=0.1)",
            "for t, p in zip(target.parameters(), model.parameters()):\n"
            "    t.data = 0.9 * t.data + 0.1 * p.data",
            "if i % 2 == 0:\n    target.load_state_dict(model.state_dict())",
        )
    )
    goal = dice.choice(
        (
            "with torch.no_grad():\n    goal = y + 0.9 * target(x)",
            "goal = (y + 0.9 * target(x)).detach()",
            "goal = y + 0.9 * model(x).detach()",
            "goal = y + 0.9 * target(x).detach().clone()",
        )
    )
    text = f"""\
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
target = copy.deepcopy(model)
x, y = torch.randn(12, 4), torch.randn(12, 2)
opt = {optimizer(dice)}
"""
    return text + loop(dice, "F.mse_loss(model(x), goal)", before=goal, after=update)


def adversarial(dice: random.Random) -> str:
    """Generator and critic with an optimizer each."""
    noise = dice.choice(("0.0", "0.1"))
    return f"""\
G = nn.Sequential(nn.Linear(3, 8), nn.ReLU(inplace=True), nn.Linear(8, 4))
D = nn.Sequential(nn.Linear(4, 8), nn.LeakyReLU(0.2, inplace=True), nn.Linear(8, 1))
model = nn.ModuleList([G, D])
optG = {optimizer(dice, "G.parameters()")}
optD = {optimizer(dice, "D.parameters()")}
real = torch.randn(10, 4)
for i in range({dice.randint(2, 4)}):
    fake = G(torch.randn(10, 3))
    optD.zero_grad()
    lossD = F.softplus(-D(real + {noise} * torch.randn_like(real))).mean()
    lossD = lossD + F.softplus(D(fake.detach())).mean()
    lossD.backward()
    optD.step()
    optG.zero_grad()
    lossG = F.softplus(-D(fake)).mean()
    lossG.backward()
    optG.step()
    losses.append((lossD.item(), lossG.item()))
"""


def recurrent(dice: random.Random) -> str:
    """Sequences, the state carried over detached."""
    kind = dice.choice(("RNN", "GRU", "LSTM"))
    carry = (
        "state = tuple(s.detach() for s in state)" if kind == "LSTM" else "state = state.detach()"
    )
    if dice.random() < 0.3:
        carry = "state = None"
    return f"""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.{kind}(3, 5, batch_first=True)
        self.out = nn.Linear(5, 1)
    def forward(self, x, state):
        h, state = self.rnn(x, state)
        return self.out(h[:, -1]), state
model = Net()
opt = {optimizer(dice)}
x, y = torch.randn(6, 12, 3), torch.randn(6, 1)
state = None
for i in range(3):
    opt.zero_grad()
    out, state = model(x[:, 4 * i : 4 * i + 4], state)
    loss = F.mse_loss(out, y)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    opt.step()
    {carry}
    losses.append(loss.item())
"""


def embedded(dice: random.Random) -> str:
    """Embeddings, attention, tied weights."""
    norm = dice.choice(("", ", max_norm=1.0", ", padding_idx=0"))
    tie = dice.choice(("", "        self.out.weight = self.words.weight\n"))
    inner = dice.choice(
        (
            "h = self.words(x)\n        h = h + self.attend(h, h, h, need_weights=False)[0]",
            "h = self.words(x)\n        h = self.block(h)",
            "h = self.words(x).mean(1, keepdim=True) + self.attend(*[self.words(x)] * 3)[0]",
        )
    )
    if "max_norm" in norm:
        tie = ""
        inner = "h = self.block(self.words(x))"
    return f"""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(11, 8{norm})
        self.attend = nn.MultiheadAttention(8, 2, batch_first=True)
        self.block = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
        self.out = nn.Linear(8, 11, bias=False)
{tie}    def forward(self, x):
        {inner}
        return self.out(h)
model = Net()
opt = {optimizer(dice)}
x = torch.randint(0, 11, (4, 6))
{loop(dice, "F.cross_entropy(model(x).flatten(0, 1), x.flatten())").rstrip()}
model.eval()
with torch.no_grad():
    losses.append(model(x))
"""


def convolutional(dice: random.Random) -> str:
    """Images from numpy, batch norm, an evaluation in between."""
    source = dice.choice(
        ("torch.from_numpy(images)", "torch.tensor(images)", "torch.as_tensor(images)")
    )
    return f"""\
images = np.random.default_rng(0).normal(size=(8, 1, 6, 6)).astype("float32")
x, y = {source}, torch.arange(8) % 3
model = nn.Sequential(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(inplace=True),
                      nn.MaxPool2d(2), nn.Flatten(), nn.Linear(12, 3))
opt = {optimizer(dice)}
{loop(dice, "F.cross_entropy(model(x), y)").rstrip()}
model.eval()
with torch.no_grad():
    accuracy = (model(x).argmax(1) == y).float().mean()
losses.append(accuracy.numpy().item())
"""


def by_hand(dice: random.Random) -> str:
    """Leaves updated without an optimizer."""
    update = dice.choice(
        (
            "with torch.no_grad():\n    w -= 0.1 * w.grad\n    b -= 0.1 * b.grad\n"
            "w.grad.zero_()\nb.grad = None",
            "with torch.no_grad():\n    for p in (w, b):\n        p.copy_(p - 0.1 * p.grad)\n"
            "        p.grad = None",
            "for p in (w, b):\n    p.data.add_(p.grad.data, alpha=-0.1)\n    p.grad.data.zero_()",
            "for p in (w, b):\n    p.data = p.data - 0.1 * p.grad\n    p.grad = None",
        )
    )
    return f"""\
w = torch.randn(4, 2, requires_grad=True)
b = torch.zeros(2).requires_grad_()
model = nn.ParameterList()
x, y = torch.randn(12, 4), torch.randn(12, 2)
for i in range({dice.randint(2, 5)}):
    loss = F.mse_loss(torch.sigmoid(x @ w + b), y)
    loss.backward()
{indent(update, "    ")}
    losses.append((loss.item(), w.detach().clone(), b.detach().clone()))
"""


def penalised(dice: random.Random) -> str:
    """Second derivatives, hooks, a custom Function, several backward calls on one graph."""
    extra = dice.choice(
        (
            "grad, = torch.autograd.grad(model(z).sum(), z, create_graph=True)\n"
            "loss = F.mse_loss(model(z), y) + 0.1 * grad.pow(2).mean()\nloss.backward()",
            "out = model(z)\nout.register_hook(lambda g: g * 0.5)\n"
            "loss = F.mse_loss(out, y)\nloss.backward()",
            "out = Square.apply(model(z))\nloss = F.mse_loss(out, y)\nloss.backward()",
            "out = model(z)\nloss = F.mse_loss(out, y)\nloss.backward(retain_graph=True)\n"
            "(0.1 * out.abs().mean()).backward()",
            "loss = F.mse_loss(model(z), y)\ntorch.autograd.backward([loss])",
            "out = model(z)\nout.retain_grad()\nloss = F.mse_loss(out, y)\nloss.backward()\n"
            "losses.append(out.grad.clone())",
        )
    )
    return f"""\
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return 2 * x * g
model = nn.Sequential(nn.Linear(4, 6), nn.Softplus(), nn.Linear(6, 2))
opt = {optimizer(dice)}
x, y = torch.randn(12, 4), torch.randn(12, 2)
for i in range({dice.randint(2, 4)}):
    opt.zero_grad()
    z = x.clone().requires_grad_()
{indent(extra, "    ")}
    opt.step()
    losses.append(loss.item())
"""


def second_order(dice: random.Random) -> str:
    """LBFGS with its closure; a generator of batches over a numpy buffer that is not reused early."""
    return f"""\
model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 1))
opt = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=4)
store = np.random.default_rng({dice.randint(0, 9)}).normal(size=(3, 10, 4)).astype("float32")
buffer = np.empty((10, 4), dtype="float32")
for i in range(3):
    buffer[:] = store[i]
    x = torch.from_numpy(buffer)
    def closure():
        opt.zero_grad()
        loss = model(x).pow(2).mean()
        loss.backward()
        return loss
    losses.append(opt.step(closure).item())
"""


def actor_critic(dice: random.Random) -> str:
    """Two heads, numbers and arrays on the way, several optimizers."""
    returns = dice.choice(
        (
            "returns = torch.tensor([1.0, 0.5, 0.25, 0.0] * 3)",
            "returns = torch.from_numpy(np.cumsum(value.detach().numpy()[::-1])[::-1].copy())",
            "returns = torch.tensor([v.item() + 1 for v in value])",
            "returns = value.detach() + 1",
        )
    )
    return f"""\
body = nn.Linear(4, 8)
actor, critic = nn.Linear(8, 3), nn.Linear(8, 1)
model = nn.ModuleList([body, actor, critic])
opt = {optimizer(dice)}
x = torch.randn(12, 4)
for i in range({dice.randint(2, 4)}):
    h = torch.relu(body(x))
    policy = torch.distributions.Categorical(logits=actor(h))
    action = policy.sample()
    value = critic(h).squeeze(1)
    {returns}
    advantage = returns - value.detach()
    loss = -(policy.log_prob(action) * advantage).mean() + F.mse_loss(value, returns)
    opt.zero_grad()
    loss.backward()
    opt.step()
    losses.append(loss.item())
"""


def imitation(dice: random.Random) -> str:
    """Detaching on purpose: straight-through, baselines, teachers, clipped weights, hand-made data."""
    body, after = dice.choice(
        (
            ("soft = torch.sigmoid(model(x))\nhard = (soft > 0.5).float()\n"
             "out = hard + soft - soft.detach()", ""),
            ("out = model(x)\nweight = (out - y).abs().detach()\nout = weight**2 * out", ""),
            ("with torch.no_grad():\n    goal = torch.tanh(teacher(x))\n"
             "out = model(x) - goal", ""),
            ("scale = model(x).std().item()\nout = model(x) / max(scale, 1e-3)", ""),
            ("out = model(x)", "for p in model.parameters():\n    p.data.clamp_(-0.5, 0.5)"),
            ("out = model(torch.from_numpy(batch))", "batch[:] = rng.normal(size=batch.shape)"),
            ("out = model(x)\nseen = out.detach().numpy().copy()\nseen[seen < 0] = 0", ""),
            ("h = model[0](x)\nwith torch.no_grad():\n    h0 = model[0](x)\n"
             "out = model[2](torch.tanh(h)) + 0 * model[2](h0)", ""),
            ("k = float(torch.linalg.norm(model[0].weight))\nout = 2**model(x) / (1 + k)", ""),
            ("top = model(x).argmax(1)\nout = model(x)\nright = (top == 0).float().mean().item()", ""),
        )
    )  # fmt: skip
    start = dice.choice(
        (
            "",
            "for p in model.parameters():\n    p.data.normal_(0, 0.2)\n",
            "nn.init.zeros_(model[2].bias)\n",
            "with torch.no_grad():\n    model[0].weight *= 0.5\n",
            "model[0].weight.data = model[0].weight.data.clone()\n",
        )
    )
    return f"""\
model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2))
teacher = nn.Linear(4, 2).requires_grad_(False)
rng = np.random.default_rng(0)
batch = rng.normal(size=(12, 4)).astype("float32")
x, y = torch.randn(12, 4), torch.randn(12, 2)
{start}opt = {optimizer(dice)}
""" + loop(dice, "F.mse_loss(out, y)", before=body, after=after)


def in_part(dice: random.Random) -> str:
    """Parts that are trained later, by another optimizer, or not at all."""
    shape = dice.choice(
        (
            "opt = torch.optim.SGD(head.parameters(), lr=0.1)",
            "opt = torch.optim.SGD([{'params': body.parameters(), 'lr': 0.01}, "
            "{'params': head.parameters()}], lr=0.1)",
            "opt = torch.optim.Adam([*body.parameters(), *head.parameters(), *spare.parameters()])",
            "opt = torch.optim.SGD(head.parameters(), lr=0.1)\n"
            "opt.add_param_group({'params': list(body.parameters())})",
            "body.requires_grad_(False)\nopt = torch.optim.Adam(model.parameters())",
        )
    )
    features = ["h = body(x)", "with torch.no_grad():\n        h = body(x)"]
    if "body" not in shape:  # an optimizer that steps what is detached would be a mistake
        features.append("h = body(x).detach()")
    features_text = dice.choice(features)
    thaw = dice.choice(("", "body.requires_grad_(True)"))
    return f"""\
body, head, spare = nn.Linear(4, 6), nn.Linear(6, 2), nn.Linear(6, 2)
model = nn.Sequential(body, nn.Tanh(), head)
x, y = torch.randn(12, 4), torch.randn(12, 2)
{shape}
for i in range({dice.randint(2, 5)}):
    {features_text}
    opt.zero_grad()
    loss = F.mse_loss(head(torch.tanh(h)), y)
    loss.backward()
    opt.step()
    losses.append(loss.item())
    {thaw}
"""


FAMILIES = (
    imitation,
    imitation,
    in_part,
    sequential,
    sequential,
    residual,
    residual,
    averaged,
    adversarial,
    recurrent,
    embedded,
    convolutional,
    by_hand,
    penalised,
    second_order,
    actor_critic,
)
