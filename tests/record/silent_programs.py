"""Programs that go wrong without a message, and what the recorder has to say about each."""

from __future__ import annotations

from typing import NamedTuple


class Silent(NamedTuple):
    """`lines` are the guilty lines' texts by role; `way` is what the evidence says."""

    name: str
    cells: tuple[str, ...]
    signal: str
    lines: dict[str, str]
    way: str = ""


HEAD = """\
import numpy as np
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
"""

_TWO = HEAD + "a, b = nn.Linear(3, 3), nn.Linear(3, 1)\n"
_HELD = "opt = torch.optim.SGD([*a.parameters(), *b.parameters()], lr=0.1)"
_ROUNDS = "for _ in range(2):\n    opt.zero_grad()\n    h = a(torch.ones(2, 3))\n"
_STEP = "    b(z).sum().backward()\n    opt.step()"

_FUNCTION = """\
class Solve(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, rule):
        ctx.save_for_backward(x)
        ctx.rule = rule
        return rule(x) + 1
    @staticmethod
    def backward(ctx, grad):
        with torch.enable_grad():
            x = ctx.saved_tensors[0].detach().requires_grad_()
            return torch.autograd.grad(ctx.rule(x), x, grad)[0], None
"""

PROGRAMS = (
    Silent(
        "generated weights that a penalty is taken of, too",
        (
            HEAD + "from torch.nn.utils import vector_to_parameters\n"
            "maker, head = nn.Linear(2, 8), nn.Linear(3, 2)\n"
            "opt = torch.optim.SGD(maker.parameters(), lr=0.1)",
            "for _ in range(3):\n    opt.zero_grad()\n    theta = maker(torch.ones(2))\n"
            "    vector_to_parameters(theta, head.parameters())\n"
            "    loss = head(torch.ones(4, 3)).square().mean() + 0.1 * theta.square().mean()\n"
            "    loss.backward()\n    opt.step()",
        ),
        "graph-cut",
        {"cut": "vector_to_parameters(theta, head.parameters())", "backward": "loss.backward()"},
        "partial",
    ),
    Silent(
        "a loss of deep copies, while the optimizer steps what they were copied of",
        (
            _TWO + "import copy\n" + _HELD,
            "for _ in range(3):\n    opt.zero_grad()\n    fast = copy.deepcopy(a)\n"
            "    z = fast(torch.ones(2, 3))\n" + _STEP,
        ),
        "graph-cut",
        {"cut": "fast = copy.deepcopy(a)"},
        "data",
    ),
    Silent(
        "the weights of a loss of the program's own",
        (
            HEAD + "class Margin(nn.Module):\n    def __init__(self):\n"
            "        super().__init__()\n        self.weight = nn.Parameter(torch.randn(5, 4))\n"
            "    def forward(self, x):\n        return F.linear(x, self.weight).square().mean()\n"
            "net, loss = nn.Linear(3, 4), Margin()\n"
            "opt = torch.optim.SGD(net.parameters(), lr=0.1)",
            "for _ in range(2):\n    opt.zero_grad()\n    loss(net(torch.ones(2, 3))).backward()\n"
            "    opt.step()",
        ),
        "optimizer-misses-parameters",
        {"step": "opt.step()"},
    ),
    Silent(
        "unfrozen after the optimizer",
        (
            HEAD + "net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))\n"
            "net[0].requires_grad_(False)\n"
            "opt = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.1)",
            "for step in range(3):\n    if step == 1:\n        net[0].requires_grad_(True)\n"
            "    opt.zero_grad()\n    net(torch.ones(2, 3)).sum().backward()\n"
            "    opt.step()",
        ),
        "optimizer-misses-parameters",
        {"step": "opt.step()"},
    ),
    Silent(
        "a layer replaced since the optimizer was made",
        (
            HEAD + "net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))\n"
            "opt = torch.optim.SGD(net.parameters(), lr=0.1)",
            "for step in range(3):\n    if step == 1:\n        net[1] = nn.Linear(3, 2)\n"
            "    opt.zero_grad()\n    net(torch.ones(2, 3)).sum().backward()\n"
            "    opt.step()",
        ),
        "optimizer-misses-parameters",
        {"step": "opt.step()"},
    ),
    Silent(
        "a weight that is a plain tensor",
        (
            HEAD + "class Net(nn.Module):\n    def __init__(self):\n"
            "        super().__init__()\n        self.out = nn.Linear(3, 1)\n"
            "        self.scale = torch.ones(3, requires_grad=True)\n"
            "    def forward(self, x):\n        return self.out(self.scale * x)\n"
            "net = Net()\nopt = torch.optim.SGD(net.parameters(), lr=0.1)",
            "for _ in range(2):\n    opt.zero_grad()\n    net(torch.ones(2, 3)).sum().backward()\n"
            "    opt.step()",
        ),
        "optimizer-misses-parameters",
        {"step": "opt.step()"},
    ),
    Silent(
        "a router whose choice picks the layers",
        (
            HEAD + "gate = nn.Linear(3, 2)\nparts = nn.ModuleList([nn.Linear(3, 1), "
            "nn.Linear(3, 1)])\nopt = torch.optim.SGD([*gate.parameters(), "
            "*parts.parameters()], lr=0.1)\nx = torch.randn(4, 3)",
            "for _ in range(2):\n    opt.zero_grad()\n    picked = gate(x).argmax(1)\n"
            "    out = torch.stack([parts[k](v) for k, v in zip(picked.tolist(), x)])\n"
            "    loss = out.sum()\n    loss.backward()\n    opt.step()",
        ),
        "graph-cut",
        {"cut": "picked = gate(x).argmax(1)", "backward": "loss.backward()"},
        "operation",
    ),
    Silent(
        "gradients of several rounds, of which a step gets the last",
        (
            HEAD + "net = nn.Linear(3, 1)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)",
            "for _ in range(2):\n    for part in torch.randn(3, 2, 3):\n"
            "        opt.zero_grad()\n        net(part).square().mean().backward()\n"
            "    opt.step()",
        ),
        "gradients-thrown-away",
        {"cleared": "opt.zero_grad()", "step": "opt.step()"},
    ),
    Silent(
        "a straight-through sum that is detached as a whole",
        (
            _TWO + "c = nn.Embedding(4, 3)\n" + _HELD,
            _ROUNDS + "    q = c(torch.cdist(h, c.weight).argmin(1))\n"
            "    z = (h + (q - h)).detach()\n" + _STEP,
        ),
        "graph-cut",
        {"cut": "z = (h + (q - h)).detach()"},
        "detach",
    ),
    Silent(
        "a layer that a custom Function reads from outside",
        (
            _TWO + _HELD + f"\n{_FUNCTION}",
            "for _ in range(2):\n    opt.zero_grad()\n"
            "    z = Solve.apply(a(torch.ones(2, 3)), lambda h: b(h))\n"
            "    z.sum().backward()\n    opt.step()",
        ),
        "graph-cut",
        {"cut": "z = Solve.apply(a(torch.ones(2, 3)), lambda h: b(h))"},
        "function",
    ),
    Silent(
        "what a module holds for a custom Function",
        (
            f"{_TWO}{_HELD}\n{_FUNCTION}"
            "class Rule(nn.Module):\n    def forward(self, x):\n        return x * self.code",
            "rule = Rule()\nfor _ in range(2):\n    opt.zero_grad()\n"
            "    rule.code = b(torch.ones(2, 3))\n    z = Solve.apply(a(torch.ones(2, 3)), rule)\n"
            "    z.sum().backward()\n    opt.step()",
        ),
        "graph-cut",
        {"cut": "return x * self.code"},
        "function",
    ),
    Silent(
        "a parameter made of a value",
        (_TWO + _HELD, f"{_ROUNDS}    z = nn.Parameter(h)\n{_STEP}"),
        "graph-cut",
        {"cut": "z = nn.Parameter(h)"},
        "copy",
    ),
    Silent(
        "a leaf on the memory of a value",
        (
            _TWO + _HELD,
            f"{_ROUNDS}    z = torch.autograd.Variable(h.data, requires_grad=True)\n{_STEP}",
        ),
        "graph-cut",
        {"cut": "z = torch.autograd.Variable(h.data, requires_grad=True)"},
        "data",
    ),
    Silent(
        "a sample without the gradient",
        (
            HEAD + "a, b = nn.Linear(3, 3), nn.Linear(3, 1)\n"
            "opt = torch.optim.SGD(a.parameters(), lr=0.1)",
            f"{_ROUNDS}    z = torch.distributions.Normal(h, 1.0).sample()\n{_STEP}",
        ),
        "graph-cut",
        {"cut": "z = torch.distributions.Normal(h, 1.0).sample()"},
        "no_grad",
    ),
    Silent(
        "an optimizer of copies",
        (
            HEAD + "w = torch.ones(3, requires_grad=True)\n"
            "opt = torch.optim.SGD([w.detach().clone().requires_grad_()], lr=0.1)",
            "for _ in range(2):\n    opt.zero_grad()\n    w.sum().backward()\n    opt.step()",
        ),
        "optimizer-misses-parameters",
        {"step": "opt.step()"},
    ),
    Silent(
        "a model for each fold, an optimizer for all",
        (
            HEAD + "net = nn.Linear(3, 1)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)",
            "for _ in range(2):\n    net = nn.Linear(3, 1)\n    for _ in range(2):\n"
            "        opt.zero_grad()\n        net(torch.ones(2, 3)).sum().backward()\n"
            "        opt.step()",
        ),
        "optimizer-misses-parameters",
        {"step": "opt.step()"},
    ),
    Silent(
        "an optimizer of networks whose copies are stacked",
        (
            HEAD + "nets = [nn.Linear(3, 2) for _ in range(2)]\n"
            "opt = torch.optim.SGD([p for net in nets for p in net.parameters()], lr=0.1)\n"
            "params, _ = torch.func.stack_module_state(nets)\n"
            "def one(p):\n"
            "    return torch.func.functional_call(nets[0], p, (torch.ones(2, 3),)).sum()",
            "for _ in range(2):\n    opt.zero_grad()\n"
            "    torch.func.vmap(one)(params).sum().backward()\n    opt.step()",
        ),
        "optimizer-misses-parameters",
        {"step": "opt.step()"},
    ),
    Silent(
        "data alias",
        (
            HEAD + "x, w = torch.randn(2, 3), torch.randn(3, 1, requires_grad=True)",
            "v = torch.randn(1, requires_grad=True)\nd = x @ w\nd_ = d.data\nf = (d @ v).sum()",
            "d_[:] = 1\nf.backward()",
        ),
        "silent-overwrite",
        {"saved": "f = (d @ v).sum()", "changed": "d_[:] = 1", "alias": "d_ = d.data"},
        "data",
    ),
    Silent(
        "clipped weights",
        (
            HEAD + "critic = nn.Linear(3, 1)",
            "fake = torch.randn(4, 3, requires_grad=True)\nloss = critic(fake).mean()\n"
            "for p in critic.parameters():\n    p.data.clamp_(-0.01, 0.01)\nloss.backward()",
        ),
        "silent-overwrite",
        {"saved": "loss = critic(fake).mean()", "changed": "p.data.clamp_(-0.01, 0.01)"},
        "data",
    ),
    Silent(
        "exchanged memory",
        (
            HEAD + "p, q = (torch.randn(2, requires_grad=True) for _ in range(2))",
            "loss = (p * q).sum()\np.data = p.data * 2\nloss.backward()",
        ),
        "silent-overwrite",
        {"saved": "loss = (p * q).sum()", "changed": "p.data = p.data * 2"},
        "set_data",
    ),
    Silent(
        "a result given other memory",
        (
            HEAD + "x, w = torch.randn(2, 3), torch.randn(3, 1, requires_grad=True)",
            "def damped(t):\n    t.data = t.data.clamp(min=0)\n    return t",
            "h = damped(x @ w)\n(h + 1).sum().backward()",
        ),
        "silent-overwrite",
        {"written": "t.data = t.data.clamp(min=0)", "used": "(h + 1).sum().backward()"},
        "unrecorded",
    ),
    Silent(
        "a result scaled through its alias",
        (
            HEAD + "x, w = torch.randn(2, 3), torch.randn(3, 1, requires_grad=True)",
            "h = x @ w\nraw = h.data\nraw[raw < 0] = 0\n(h + 1).sum().backward()",
        ),
        "silent-overwrite",
        {"written": "raw[raw < 0] = 0", "alias": "raw = h.data"},
        "unrecorded",
    ),
    Silent(
        "buffer filled in another cell",
        (
            HEAD + "buffer = np.ones(3, dtype='float32')\nw = torch.randn(3, requires_grad=True)",
            "loss = (torch.from_numpy(buffer) * w).sum()",
            "buffer[:] = 2",
            "loss.backward()",
        ),
        "silent-overwrite",
        {"saved": "loss = (torch.from_numpy(buffer) * w).sum()", "changed": "buffer[:] = 2"},
        "numpy",
    ),
    Silent(
        "array of a result",
        (
            HEAD + "w = torch.randn(3, requires_grad=True)",
            "y = torch.exp(w)\narray = y.detach().numpy()\nloss = y.sum()\narray[0] = 0\n"
            "loss.backward()",
        ),
        "silent-overwrite",
        {"saved": "y = torch.exp(w)", "changed": "array[0] = 0"},
        "numpy",
    ),
    Silent(
        "fused step",
        (
            HEAD + "net = nn.Linear(3, 3)\n"
            "opt = torch.optim.Adam(net.parameters(), lr=0.1, fused=True)",
            "h = torch.tanh(net(torch.randn(4, 3)))\na, b = h.mean(), net(h).pow(2).mean()\n"
            "a.backward(retain_graph=True)\nopt.step()\nb.backward()",
        ),
        "silent-overwrite",
        {"saved": "a, b = h.mean(), net(h).pow(2).mean()", "changed": "opt.step()"},
        "step",
    ),
    Silent(
        "custom Function",
        (
            HEAD + "class Square(torch.autograd.Function):\n    @staticmethod\n"
            "    def forward(ctx, x):\n        ctx.save_for_backward(x)\n        x.mul_(3)\n"
            "        return x * x\n    @staticmethod\n    def backward(ctx, g):\n"
            "        x, = ctx.saved_tensors\n        return 2 * x * g",
            "w = torch.randn(3, requires_grad=True)\nout = Square.apply(w * 2)\n"
            "out.sum().backward()",
        ),
        "silent-overwrite",
        {"saved": "out = Square.apply(w * 2)", "changed": "x.mul_(3)"},
        "function",
    ),
    Silent(
        "tensor kept on ctx",
        (
            HEAD + "class Scale(torch.autograd.Function):\n    @staticmethod\n"
            "    def forward(ctx, x, y):\n        ctx.x, ctx.y = x, y\n        return x * y\n"
            "    @staticmethod\n    def backward(ctx, g):\n        return g * ctx.y, g * ctx.x",
            "w, v = torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)\n"
            "h = w * 2\nout = Scale.apply(h, v)\nh.add_(1)\n(out + h).sum().backward()",
        ),
        "silent-overwrite",
        {"saved": "out = Scale.apply(h, v)", "changed": "h.add_(1)"},
        "context",
    ),
    Silent(
        "optimizer in a function",
        (
            HEAD + "a, b = nn.Linear(3, 4), nn.Linear(4, 1)",
            "def train(x):\n    opt = torch.optim.SGD([*a.parameters(), *b.parameters()], lr=0.1)\n"
            "    for _ in range(3):\n        opt.zero_grad()\n        h = torch.tanh(a(x))\n"
            "        h = torch.tensor(h.tolist())\n        loss = b(h).pow(2).mean()\n"
            "        loss.backward()\n        opt.step()",
            "train(torch.randn(5, 3))",
        ),
        "graph-cut",
        {"cut": "h = torch.tensor(h.tolist())", "backward": "loss.backward()"},
        "number",
    ),
    Silent(
        "number in the loss",
        (
            HEAD + "a, b = nn.Linear(3, 4), nn.Linear(3, 1)\n"
            "opt = torch.optim.SGD([*a.parameters(), *b.parameters()], lr=0.1)\n"
            "x = torch.randn(5, 3)",
            "for _ in range(2):\n    opt.zero_grad()\n    penalty = b(x).pow(2).mean().item()\n"
            "    loss = a(x).pow(2).mean()\n    loss += 0.1 * penalty\n    loss.backward()\n"
            "    opt.step()",
        ),
        "graph-cut",
        {"cut": "penalty = b(x).pow(2).mean().item()", "backward": "loss.backward()"},
        "number",
    ),
    Silent(
        "list filled by append",
        (
            HEAD + "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.blocks = []\n        for _ in range(2):\n"
            "            self.blocks.append(nn.Linear(3, 3))\n        self.out = nn.Linear(3, 1)\n"
            "    def forward(self, x):\n        for block in self.blocks:\n"
            "            x = torch.relu(block(x))\n        return self.out(x)",
            "net = Net()\ndef train():\n    opt = torch.optim.Adam(net.parameters())\n"
            "    for _ in range(2):\n        opt.zero_grad()\n"
            "        net(torch.ones(2, 3)).mean().backward()\n        opt.step()\ntrain()",
        ),
        "plain-list-of-layers",
        {"step": "opt.step()"},
    ),
    Silent(
        "layers of an object that is no module",
        (
            HEAD + "class Fields:\n    def __init__(self):\n"
            "        self.blocks = {k: nn.Linear(3, 3) for k in 'ab'}\n"
            "    def __call__(self, x):\n        return sum(b(x) for b in self.blocks.values())\n"
            "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.fields, self.out = Fields(), nn.Linear(3, 1)\n"
            "    def forward(self, x):\n        return self.out(self.fields(x))",
            "net = Net()\nopt = torch.optim.Adam(net.parameters())\nfor _ in range(2):\n"
            "    opt.zero_grad()\n    net(torch.ones(2, 3)).mean().backward()\n    opt.step()",
        ),
        "plain-list-of-layers",
        {"step": "opt.step()"},
    ),
    Silent(
        "replaced layer",
        (
            HEAD + "net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))\n"
            "opt = torch.optim.SGD(net.parameters(), lr=0.1)\nnet[1] = nn.Linear(3, 2)",
            "for _ in range(2):\n    opt.zero_grad()\n    net(torch.ones(2, 3)).sum().backward()\n"
            "    opt.step()",
        ),
        "optimizer-misses-parameters",
        {"step": "opt.step()"},
    ),
    Silent(
        "a loss wrapped anew",
        (
            HEAD + "from torch.autograd import Variable\nnet = nn.Linear(3, 1)\n"
            "opt = torch.optim.SGD(net.parameters(), lr=0.1)",
            "for _ in range(2):\n    opt.zero_grad()\n    loss = net(torch.ones(2, 3)).sum()\n"
            "    loss = Variable(loss.data, requires_grad=True)\n    loss.backward()\n"
            "    opt.step()",
        ),
        "graph-cut",
        {"cut": "loss = Variable(loss.data, requires_grad=True)", "backward": "loss.backward()"},
        "data",
    ),
    Silent(
        "a loss detached in place",
        (
            HEAD + "net = nn.Linear(3, 1)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)",
            "for _ in range(2):\n    opt.zero_grad()\n    loss = net(torch.ones(2, 3)).sum()\n"
            "    loss.detach_().requires_grad_()\n    loss.backward()\n    opt.step()",
        ),
        "graph-cut",
        {"cut": "loss.detach_().requires_grad_()", "backward": "loss.backward()"},
        "detach",
    ),
    Silent(
        "cleared by the module",
        (
            HEAD + "net = nn.Linear(3, 1)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)",
            "for _ in range(2):\n    loss = net(torch.ones(2, 3)).sum()\n    loss.backward()\n"
            "    net.zero_grad()\n    opt.step()",
        ),
        "gradients-thrown-away",
        {"cleared": "net.zero_grad()", "backward": "loss.backward()", "step": "opt.step()"},
    ),
    Silent(
        "never cleared",
        (
            HEAD + "net = nn.Linear(3, 1)\nopt = torch.optim.Adam(net.parameters())",
            "for _ in range(4):\n    loss = net(torch.ones(2, 3)).sum()\n    loss.backward()\n"
            "    opt.step()",
        ),
        "gradients-not-cleared",
        {"step": "opt.step()", "backward": "loss.backward()"},
    ),
)
