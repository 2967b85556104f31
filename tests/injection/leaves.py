"""Bugs around leaves: casts after requires_grad, updates that are recorded."""

from __future__ import annotations

from random import Random

from injection.case import MARK, Injected, indent, injected
from injection.inplace import IMPORTS


def _cells(seed: str, *cells: list[str]) -> list[str]:
    return [seed, *("\n".join(c) for c in cells if c)]


def cast(rng: Random, number: int) -> Injected:
    """The tensor that should get a gradient is the result of a cast or of arithmetic."""
    seed, d = IMPORTS.format(seed=rng.randrange(99)), rng.randint(2, 4)
    name = rng.choice(["w", "theta", "scale", "coef", "params['w']", "state.w", "weights[0]"])
    before = {"params['w']": ["params = {}"], "state.w": ["class State:", "    pass", "", "state = State()"],
              "weights[0]": ["weights = [None]"]}.get(name, [])  # fmt: skip
    numbers = [round(rng.uniform(-2, 2), 2) for _ in range(d)]
    forms = [
        (f"torch.tensor({numbers}, dtype=torch.float64, requires_grad=True)",
         f"torch.tensor({numbers}, requires_grad=True).double()", "float64"),
        (f"torch.tensor({numbers}, dtype=torch.float64, requires_grad=True)",
         f"torch.tensor({numbers}, requires_grad=True).to(torch.float64)", "float64"),
        (f"torch.ones({d}, dtype=torch.float64, requires_grad=True)",
         f"torch.ones({d}, requires_grad=True).double()", "float64"),
        (f"torch.zeros({d}, dtype=torch.float64, requires_grad=True)",
         f"torch.zeros({d}, requires_grad=True).to(dtype=torch.float64)", "float64"),
        (f"(torch.randn({d}) * 0.1).requires_grad_()",
         f"torch.randn({d}, requires_grad=True) * 0.1", "float32"),
        (f"(torch.rand({d}) - 0.5).requires_grad_()",
         f"torch.rand({d}, requires_grad=True) - 0.5", "float32"),
        (f"torch.full(({d},), 0.5).requires_grad_()",
         f"torch.full(({d},), 0.5, requires_grad=True).clone()", "float32"),
        (f"torch.arange({d}.0).reshape({d}).requires_grad_()",
         f"torch.arange({d}.0, requires_grad=True).reshape({d})", "float32"),
        (f"torch.linspace(-1, 1, {d}).to(torch.float64).requires_grad_()",
         f"torch.linspace(-1, 1, {d}, requires_grad=True).to(torch.float64)", "float64"),
    ]  # fmt: skip
    right, wrong, dtype = rng.choice(forms)
    style = rng.choice(["grad", "manual", "optimizer", "inside"])
    data = [
        f"x = torch.randn(6, {d}, dtype=torch.{dtype})",
        f"y = torch.randn(6, dtype=torch.{dtype})",
    ]
    loss = rng.choice(
        [
            f"loss = ((x @ {name}) - y).pow(2).mean()",
            f"loss = (x * {name}).sum(1).sub(y).abs().sum()",
        ]
    )
    if style == "optimizer":
        body = [f"opt = torch.optim.SGD([{name}], lr=0.1)", loss, "loss.backward()", "opt.step()"]
    elif style == "manual":
        body = ["for i in range(2):", *indent([loss, "loss.backward()", "with torch.no_grad():",
                f"    {name} -= 0.1 * {name}.grad", f"{name}.grad = None"]), loss, "loss.backward()"]  # fmt: skip
    else:
        body = [loss, "loss.backward()", f"print({name}.grad)"]
    both = []
    for value, mark in ((right, ""), (wrong, MARK)):
        if style == "inside" and not before:
            made = ["def make():", f"    {name} = {value}{mark}", f"    return {name}"]
            both.append(_cells(seed, made, [*data, f"{name} = make()"], body))
        else:
            both.append(_cells(seed, [*before, *data, f"{name} = {value}{mark}"], body))
    return injected(f"cast-{number}-{style}", "cast", both[0], both[1], [f"{name}.grad"])


def leaf(rng: Random, number: int) -> Injected:
    """An update without no_grad, an initialisation after requires_grad."""
    make = rng.choice([_update, _update, _initial, _clipped, _soft])
    return make(rng, f"leaf-{number}-{make.__name__[1:]}")


def _update(rng: Random, name: str) -> Injected:
    seed, d = IMPORTS.format(seed=rng.randrange(99)), rng.randint(2, 4)
    setup = [f"x = torch.randn(6, {d})", "y = torch.randn(6, 1)",
             f"w = torch.randn({d}, 1, requires_grad=True)", "b = torch.zeros(1, requires_grad=True)"]  # fmt: skip
    form = rng.choice(["{p} -= lr * {p}.grad", "{p}.sub_(lr * {p}.grad)", "{p}.add_({p}.grad, alpha=-lr)",
                       "{p} += -lr * {p}.grad"])  # fmt: skip
    style = rng.choice(["plain", "loop", "helper", "class"])
    rounds = rng.choice([1, 2, 3])
    both = []
    for correct in (True, False):
        mark = "" if correct else MARK
        guard = ["with torch.no_grad():"] if correct else []
        by = 1 if correct else 0
        code: list[str] = []
        if style == "plain":
            lines = [form.format(p="w") + mark, form.format(p="b")]
            update = [*guard, *indent(lines, by)]
        elif style == "loop":
            lines = ["for p in (w, b):", "    " + form.format(p="p") + mark]
            update = [*guard, *indent(lines, by)]
        elif style == "helper":
            lines = [*guard, *indent(["for p in params:", "    " + form.format(p="p") + mark], by)]
            code = ["def descend(params, lr):", *indent(lines)]
            update = ["descend([w, b], lr)"]
        else:
            lines = [
                *guard,
                *indent(
                    [
                        "for p in self.params:",
                        "    " + form.format(p="p").replace("lr", "self.lr") + mark,
                    ],
                    by,
                ),
            ]
            code = ["class Descent:", "    def __init__(self, params, lr):", "        self.params = params",
                    "        self.lr = lr", "", "    def step(self):", *indent(lines, 2)]  # fmt: skip
            update = ["opt.step()"]
        start = ["lr = 0.1"] if style != "class" else ["opt = Descent([w, b], 0.1)"]
        body = [
            "w.grad = None",
            "b.grad = None",
            "loss = (x @ w + b - y).pow(2).mean()",
            "loss.backward()",
            *update,
        ]
        both.append(
            _cells(seed, code, setup, [*start, f"for i in range({rounds + 1}):", *indent(body)])
        )
    return injected(name, "leaf", both[0], both[1], ["w.grad", "b.grad"])


def _initial(rng: Random, name: str) -> Injected:
    seed, d = IMPORTS.format(seed=rng.randrange(99)), rng.randint(2, 4)
    write = rng.choice(["w[0] = 0.0", "w *= 0.1", "w.mul_(0.1)", "w[:, 0] = 1.0", "w.fill_(0.2)",
                        "w[w < 0] = 0.0", "w.uniform_(-0.1, 0.1)", "w.clamp_(-0.5, 0.5)", "w.add_(1.0)",
                        "w[0, 0] += 1.0", "w.zero_()"])  # fmt: skip
    style = rng.choice(["tensor", "parameter", "layer"])
    body = ["loss = torch.tanh(x @ w).pow(2).sum()", "loss.backward()", "print(w.grad.norm())"]
    both = []
    for correct in (True, False):
        mark = "" if correct else MARK
        data = [f"x = torch.randn(4, {d})"]
        if style == "tensor":
            made = (
                [f"w = torch.randn({d}, {d})", write, "w.requires_grad_()"]
                if correct
                else [f"w = torch.randn({d}, {d}, requires_grad=True)", write + mark]
            )
            grads = ["w.grad"]
        elif style == "parameter":
            made = [f"w = nn.Parameter(torch.randn({d}, {d}))"]
            made += ["with torch.no_grad():", "    " + write] if correct else [write + mark]
            grads = ["w.grad"]
        else:
            made = [f"layer = nn.Linear({d}, {d}, bias=False)"]
            inner = write.replace("w", "layer.weight").replace("layer.layer", "layer")
            made += ["with torch.no_grad():", "    " + inner] if correct else [inner + mark]
            grads = ["layer.weight.grad"]
        lines = (
            body
            if style != "layer"
            else [
                b.replace("x @ w", "layer(x)").replace("w.grad", "layer.weight.grad") for b in body
            ]
        )
        both.append(_cells(seed, [*data, *made], lines))
    return injected(name, "leaf", both[0], both[1], grads)


def _clipped(rng: Random, name: str) -> Injected:
    seed, d = IMPORTS.format(seed=rng.randrange(99)), rng.randint(2, 4)
    setup = [f"net = nn.Sequential(nn.Linear({d}, 3), nn.Tanh(), nn.Linear(3, 1))",
             "opt = torch.optim.SGD(net.parameters(), lr=0.1)", f"x = torch.randn(5, {d})"]  # fmt: skip
    write = rng.choice(["p.clamp_(-0.1, 0.1)", "p.mul_(0.99)", "p *= 0.9", "p.add_(0.001)",
                        "p -= 0.01 * p.sign()"])  # fmt: skip
    both = []
    for correct in (True, False):
        lines = ["for p in net.parameters():", "    " + write + ("" if correct else MARK)]
        lines = ["with torch.no_grad():", *indent(lines)] if correct else lines
        body = [
            "opt.zero_grad()",
            "loss = net(x).pow(2).mean()",
            "loss.backward()",
            "opt.step()",
            *lines,
        ]
        both.append(_cells(seed, setup, ["for i in range(2):", *indent(body)]))
    return injected(name, "leaf", both[0], both[1], ["net[0].weight.grad", "net[2].weight.grad"])


def _soft(rng: Random, name: str) -> Injected:
    """A target network that follows the online one."""
    seed, d = IMPORTS.format(seed=rng.randrange(99)), rng.randint(2, 4)
    setup = [f"online, target = nn.Linear({d}, {d}), nn.Linear({d}, {d})",
             "opt = torch.optim.SGD(online.parameters(), lr=0.1)", f"x = torch.randn(5, {d})"]  # fmt: skip
    write = rng.choice(
        ["p.copy_(0.9 * p + 0.1 * q)", "p.mul_(0.9).add_(0.1 * q)", "p.lerp_(q, 0.1)"]
    )
    both = []
    for correct in (True, False):
        mark = "" if correct else MARK
        pair = "for p, q in zip(target.parameters(), online.parameters()):"
        lines = [pair, "    " + write + mark]
        lines = ["with torch.no_grad():", *indent(lines)] if correct else lines
        helper = ["def follow():", *indent(lines)]
        body = ["opt.zero_grad()", "loss = F.mse_loss(online(x), target(x).detach())", "loss.backward()",
                "opt.step()", "follow()"]  # fmt: skip
        both.append(_cells(seed, setup, helper, ["for i in range(3):", *indent(body)]))
    return injected(name, "leaf", both[0], both[1], ["online.weight.grad", "online.bias.grad"])
