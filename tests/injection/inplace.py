"""Out-of-place statements become in-place ones: in functions, methods, loops, through other names.

A forward pass is a chain of steps on one name.  Every step has a right form and may have wrong
ones that compute the same values, so the gradient that was meant is the right program's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random

from injection.case import MARK, Injected, indent, injected

Lines = list[str]
Bug = Callable[[Random, str, int], "Step"]


@dataclass
class Step:
    """Lines of the forward pass; `wrong` has one line with a mark.  The helpers are definitions
    that stand in an earlier cell, with a mark in `wrong_helper` where the bug is there."""

    right: Lines
    wrong: Lines | None = None
    helper: Lines = field(default_factory=list)
    wrong_helper: Lines = field(default_factory=list)


def _activation(rng: Random, v: str) -> Lines:
    name = rng.choice(["tanh", "sigmoid", "exp", "softmax", "softplus", "relu"])
    if name == "softmax":
        return [f"{v} = torch.softmax({v}, dim=-1)"]
    if name == "exp":
        return [f"{v} = torch.exp({v} * 0.1)"]
    if name == "softplus":
        return [f"{v} = F.softplus({v}).sqrt()"]
    return [rng.choice([f"{v} = torch.{name}({v})", f"{v} = {v}.{name}()"])]


def _constant(rng: Random) -> str:
    return rng.choice(["0.5", "2.0", "1.5", "0.9", "3"])


def _writes(rng: Random, v: str, x: str) -> tuple[Lines, Lines, list[Lines]]:
    """What is written, three ways: on the name, the right form and the wrong ones.

    `v` is the result's name, `x` the input's: the wrong forms write into `x`.
    """
    c, same = _constant(rng), v == x
    after = [] if same else [f"{v} = {x}"]
    kinds = {
        "scale": (
            [f"{v} = {x} * {c}"],
            [[f"{x} *= {c}{MARK}", *after], [f"{x}.mul_({c}){MARK}", *after],
             [f"{v} = {x}.mul_({c}){MARK}"]],
        ),
        "shift": (
            [f"{v} = {x} + {c}"],
            [[f"{x} += {c}{MARK}", *after], [f"{x}.add_({c}){MARK}", *after],
             [f"{v} = {x}.add_({c}){MARK}"], [f"{x}.add_(1.0, alpha={c}){MARK}", *after]],
        ),
        "lower": (
            [f"{v} = {x} - {x}.mean()"],
            [[f"{x} -= {x}.mean(){MARK}", *after], [f"{v} = {x}.sub_({x}.mean()){MARK}"],
             [f"{x}.sub_({x}.mean()){MARK}", *after]],
        ),
        "divide": (
            [f"{v} = {x} / {c}"],
            [[f"{x} /= {c}{MARK}", *after], [f"{x}.div_({c}){MARK}", *after]],
        ),
        "norm": (
            [f"{v} = {x} / {x}.detach().norm()"],
            [[f"{x} /= {x}.detach().norm(){MARK}", *after],
             [f"{x}.div_({x}.detach().norm()){MARK}", *after]],
        ),
        "clamp": (
            [f"{v} = {x}.clamp(-0.3, 0.6)"],
            [[f"{x}.clamp_(-0.3, 0.6){MARK}", *after], [f"{v} = {x}.clamp_(-0.3, 0.6){MARK}"],
             [f"torch.clamp_({x}, -0.3, 0.6){MARK}", *after]],
        ),
        "clampmin": (
            [f"{v} = torch.clamp({x}, min=0.1)"],
            [[f"{x}.clamp_(min=0.1){MARK}", *after], [f"{v} = {x}.clamp_min_(0.1){MARK}"]],
        ),
        "relu": (
            [f"{v} = torch.relu({x})"],
            [[f"{v} = torch.relu_({x}){MARK}"], [f"{v} = F.relu({x}, inplace=True){MARK}"],
             [f"{v} = {x}.relu_(){MARK}"], [f"F.relu_({x}){MARK}", *after]],
        ),
        "leaky": (
            [f"{v} = F.leaky_relu({x}, 0.1)"],
            [[f"{v} = F.leaky_relu({x}, 0.1, inplace=True){MARK}"],
             [f"{v} = F.leaky_relu_({x}, 0.1){MARK}"]],
        ),
        "mask": (
            [f"{v} = {x}.masked_fill({x} < 0.05, 0.05)"],
            [[f"{x}[{x} < 0.05] = 0.05{MARK}", *after],
             [f"{x}.masked_fill_({x} < 0.05, 0.05){MARK}", *after],
             [f"low = {x} < 0.05", f"{x}[low] = 0.05{MARK}", *after]],
        ),
        "where": (
            [f"{v} = torch.where({x} > 0.2, {x}.new_full((), 0.2), {x})"],
            [[f"{x}[{x} > 0.2] = 0.2{MARK}", *after],
             [f"high = {x} > 0.2", f"{x}.masked_fill_(high, 0.2){MARK}", *after]],
        ),
        "column": (
            [f"{v} = torch.cat([{x}[:, :1] * {c}, {x}[:, 1:]], dim=1)"],
            [[f"{x}[:, :1] *= {c}{MARK}", *after], [f"{x}[:, 0] *= {c}{MARK}", *after],
             [f"{x}[:, 0] = {x}[:, 0] * {c}{MARK}", *after],
             [f"{x}[:, :1].mul_({c}){MARK}", *after],
             [f"first = {x}[:, :1]", f"first.mul_({c}){MARK}", *after],
             [f"first = {x}.narrow(1, 0, 1)", f"first *= {c}{MARK}", *after]],
        ),
        "row": (
            [f"{v} = torch.cat([torch.zeros_like({x}[:1]), {x}[1:]])"],
            [[f"{x}[0] = 0{MARK}", *after], [f"{x}[:1] = 0.0{MARK}", *after],
             [f"{x}[0].zero_(){MARK}", *after], [f"{x}[:1].fill_(0){MARK}", *after],
             [f"head = {x}[0]", f"head.zero_(){MARK}", *after]],
        ),
        "power": (
            [f"{v} = {x} ** 2"],
            [[f"{x} **= 2{MARK}", *after], [f"{x}.pow_(2){MARK}", *after],
             [f"{v} = {x}.square_(){MARK}"]],
        ),
        "negate": (
            [f"{v} = -{x}"],
            [[f"{v} = {x}.neg_(){MARK}"], [f"{x}.neg_(){MARK}", *after]],
        ),
    }  # fmt: skip
    right, wrong = kinds[rng.choice(sorted(kinds))]
    return right, [], wrong


def _aliased(rng: Random, x: str, lines: Lines) -> Lines:
    """Write through another name of `x` instead."""
    way = rng.choice(["alias", "view", "row", "flat"])
    other = {"alias": "same", "view": "seen", "row": "rows", "flat": "flat"}[way]
    make = {
        "alias": f"{other} = {x}",
        "view": f"{other} = {x}.view({x}.shape)",
        "row": f"{other} = {x}[:]",
        "flat": f"{other} = {x}.view(-1)",
    }[way]
    target = {
        "mul": f"{other}.mul_(0.5){MARK}",
        "add": f"{other} += 0.25{MARK}",
    }[lines[0]]
    return [make, target]


def _bug(rng: Random, v: str, number: int) -> Step:
    """One injectable step, with its bug."""
    shape = rng.random()
    if shape < 0.55:
        right, _, wrong = _writes(rng, v, v)
        return Step(right, rng.choice(wrong))
    if shape < 0.7:  # through another name
        op, good = rng.choice([("mul", f"{v} = {v} * 0.5"), ("add", f"{v} = {v} + 0.25")])
        return Step([good], _aliased(rng, v, [op]))
    helper = f"{rng.choice(['soften', 'shrink', 'adjust', 'limit', 'rescale'])}_{number}"
    right, _, wrong = _writes(rng, "t", "t")
    head = f"def {helper}(t):"
    return Step(
        [f"{v} = {helper}({v})"],
        [f"{v} = {helper}({v})"],
        [head, *indent(right), "    return t"],
        [head, *indent(rng.choice(wrong)), "    return t"],
    )


def _residual(rng: Random, v: str, skip: str) -> Step:
    return Step(
        [f"{v} = {v} + {skip}"],
        rng.choice([[f"{v} += {skip}{MARK}"], [f"{v}.add_({skip}){MARK}"]]),
    )


def _harmless(rng: Random, v: str) -> Lines:
    return rng.choice(
        [[f"{v} = {v} * 1.1"], [f"{v} = {v} + 0.01"], [f"{v} = {v}.contiguous()"], [],
         [f"{v} = {v} - 0.02 * {v}"], [f"{v} = F.dropout({v}, 0.0)"]]
    )  # fmt: skip


@dataclass
class Chain:
    right: Lines
    wrong: Lines
    helpers: Lines
    wrong_helpers: Lines


def _hidden(rng: Random, v: str, number: int) -> Step:
    """A write through `.data`, which autograd does not see."""
    c = _constant(rng)
    right, wrong = rng.choice(
        [
            ([f"{v} = {v} * {c}"], [[f"{v}.data.mul_({c}){MARK}"], [f"{v}.data *= {c}{MARK}"],
             [f"raw = {v}.data", f"raw.mul_({c}){MARK}"]]),
            ([f"{v} = {v}.masked_fill({v} < 0.05, 0.0)"], [[f"{v}.data[{v} < 0.05] = 0.0{MARK}"],
             [f"{v}.data.masked_fill_({v}.data < 0.05, 0.0){MARK}"]]),
            ([f"{v} = {v}.clamp(-0.3, 0.6)"], [[f"{v}.data.clamp_(-0.3, 0.6){MARK}"],
             [f"{v}.data = {v}.data.clamp(-0.3, 0.6){MARK}"]]),
            ([f"{v} = torch.cat([{v}[:, :1] * {c}, {v}[:, 1:]], dim=1)"],
             [[f"{v}.data[:, 0] *= {c}{MARK}"], [f"{v}.data[:, :1].mul_({c}){MARK}"]]),
        ]
    )  # fmt: skip
    if rng.random() < 0.3:
        helper, body = f"damp_{number}", rng.choice(wrong)
        t = [line.replace(f"{v}.data", "t.data").replace(f"{v} <", "t <") for line in body]
        good = [
            line.replace(f"{v} ", "t ").replace(f"{v}[", "t[").replace(f"{v}.", "t.")
            for line in right
        ]
        call = [f"{v} = {helper}({v})"]
        head = f"def {helper}(t):"
        return Step(
            call, call, [head, *indent(good), "    return t"], [head, *indent(t), "    return t"]
        )
    return Step(right, rng.choice(wrong))


def chain(rng: Random, v: str, linear: list[str], length: int, bug: Bug) -> Chain:
    """A forward pass on `v` with one bug, placed after a random layer."""
    where = rng.randrange(length)
    right: Lines = []
    wrong: Lines = []
    helpers: Lines = []
    wrong_helpers: Lines = []
    for number in range(length):
        layer = linear[number % len(linear)].format(v=v)
        kept = rng.random() < 0.3
        lines = ([f"skip = {v}"] if kept else []) + [f"{v} = {layer}"]
        lines += _activation(rng, v) if rng.random() < 0.85 or number == where else []
        right += lines
        wrong += lines
        if number == where:
            plain = kept and bug is _bug and rng.random() < 0.5
            step = _residual(rng, v, "skip") if plain else bug(rng, v, number)
            right += step.right
            wrong += step.wrong or step.right
            helpers += step.helper
            wrong_helpers += step.wrong_helper
        tail = _harmless(rng, v)
        right += tail
        wrong += tail
    return Chain(right, wrong, helpers, wrong_helpers)


IMPORTS = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\ntorch.manual_seed({seed})"


def _definition(name: str, lines: Lines, result: str, argument: str) -> Lines:
    return [f"def {name}({argument}):", *indent(lines), f"    return {result}"]


def data(rng: Random, number: int) -> Injected:
    """The same places, with a write that autograd does not see."""
    make = rng.choice([_top_level, _function, _module, _stack, _recurrent])
    return replace(make(rng, f"data-{number}-{make.__name__[1:]}", _hidden), kind="data")


def inplace(rng: Random, number: int) -> Injected:
    make = rng.choice([_top_level, _function, _module, _module, _stack, _recurrent, _sequential])
    return make(rng, f"inplace-{number}-{make.__name__[1:]}")


def _data(rng: Random) -> tuple[int, int, str]:
    n, d = rng.randint(2, 5), rng.randint(2, 5)
    return n, d, f"x = torch.randn({n}, {d})\ntarget = torch.rand({n}, {d})"


def _loss(rng: Random, out: str) -> str:
    return rng.choice(
        [f"F.mse_loss({out}, target)", f"({out} - target).pow(2).mean()", f"({out} * target).sum()",
         f"{out}.pow(2).sum()", f"F.smooth_l1_loss({out}, target)"]
    )  # fmt: skip


def _train(rng: Random, opt: str, forward: Lines, loss: str, name: str = "step") -> Lines:
    """A training loop around a forward pass, or one backward."""
    steps = rng.choice([0, 0, 2, 3])
    body = [*forward, f"loss = {loss}", "loss.backward()"]
    if not steps:
        return body
    return [
        f"for {name} in range({steps}):",
        *indent([f"{opt}.zero_grad()", *body, f"{opt}.step()"]),
    ]


def _optimizer(rng: Random, params: str) -> str:
    kind = rng.choice(["SGD({}, lr=0.05)", "Adam({}, lr=0.01)", "SGD({}, lr=0.1, momentum=0.9)"])
    return f"opt = torch.optim.{kind.format(params)}"


def _assemble(
    rng: Random, name: str, found: Chain, make: str, both: tuple[list[str], list[str]],
    grads: list[str],
) -> Injected:  # fmt: skip
    """Cells: imports, helpers (where there are any), then the given ones."""
    seed = IMPORTS.format(seed=rng.randrange(100))
    right, wrong = both
    if found.helpers:
        right = ["\n".join(found.helpers), *right]
        wrong = ["\n".join(found.wrong_helpers), *wrong]
    return injected(name, "inplace", [seed, *right], [seed, *wrong], grads)


def _top_level(rng: Random, name: str, bug: Bug = _bug) -> Injected:
    _, d, data = _data(rng)
    v, count = rng.choice(["h", "y", "out", "z", "feat"]), rng.randint(1, 3)
    weights = [f"w{i}" for i in range(count)]
    setup = [data, *(f"{w} = torch.randn({d}, {d}, requires_grad=True)" for w in weights)]
    setup.append(_optimizer(rng, f"[{', '.join(weights)}]"))
    found = chain(rng, v, [f"{{v}} @ {w}" for w in weights], count + rng.randint(0, 2), bug)
    loss = _loss(rng, v)
    state = rng.getstate()
    both = []
    for lines in (found.right, found.wrong):
        rng.setstate(state)
        both.append(["\n".join(setup), "\n".join(_train(rng, "opt", [f"{v} = x", *lines], loss))])
    return _assemble(rng, name, found, v, (both[0], both[1]), [f"{w}.grad" for w in weights])


def _function(rng: Random, name: str, bug: Bug = _bug) -> Injected:
    _, d, data = _data(rng)
    v, count = rng.choice(["h", "y", "out", "z"]), rng.randint(1, 3)
    setup = [data, f"params = {{f'w{{i}}': torch.randn({d}, {d}) * 0.5 for i in range({count})}}"]
    setup += ["for p in params.values():", "    p.requires_grad_()"]
    setup.append(_optimizer(rng, "list(params.values())"))
    layers = [f"{{v}} @ params['w{i}']" for i in range(count)]
    found = chain(rng, v, layers, count + rng.randint(0, 1), bug)
    function = rng.choice(["forward", "predict", "encode"])
    loss = _loss(rng, "out")
    state = rng.getstate()
    both = []
    for lines in (found.right, found.wrong):
        rng.setstate(state)
        code = _definition(function, lines, v, v)
        train = _train(rng, "opt", [f"out = {function}(x)"], loss)
        both.append(["\n".join(setup), "\n".join(code), "\n".join(train)])
    grads = [f"params['w{i}'].grad" for i in range(count)]
    return _assemble(rng, name, found, v, (both[0], both[1]), grads)


def _module(rng: Random, name: str, bug: Bug = _bug) -> Injected:
    _, d, data = _data(rng)
    v, count = rng.choice(["h", "x", "out", "z"]), rng.randint(1, 3)
    found = chain(
        rng, v, [f"self.fc{i}({{v}})" for i in range(count)], count + rng.randint(0, 1), bug
    )
    init = [f"self.fc{i} = nn.Linear({d}, {d})" for i in range(count)]
    loss = _loss(rng, "out")
    state = rng.getstate()
    both = []
    for lines in (found.right, found.wrong):
        rng.setstate(state)
        code = ["class Net(nn.Module):", "    def __init__(self):", "        super().__init__()"]
        code += [*indent(init, 2), "", *indent(_definition("forward", lines, v, f"self, {v}"))]
        setup = [data, "net = Net()", _optimizer(rng, "net.parameters()")]
        train = _train(rng, "opt", ["out = net(x)"], loss)
        both.append(["\n".join(code), "\n".join(setup), "\n".join(train)])
    grads = [f"net.fc{i}.{p}.grad" for i in range(count) for p in ("weight", "bias")]
    return _assemble(rng, name, found, v, (both[0], both[1]), grads)


def _stack(rng: Random, name: str, bug: Bug = _bug) -> Injected:
    """A loop over layers inside the forward pass."""
    _, d, data = _data(rng)
    count = rng.randint(2, 3)
    found = chain(rng, "h", ["layer({v})"], 1, bug)
    loss = _loss(rng, "out")
    state = rng.getstate()
    both = []
    for lines in (found.right, found.wrong):
        rng.setstate(state)
        code = ["class Stack(nn.Module):", "    def __init__(self, depth, width):"]
        code += indent(["super().__init__()",
                        "self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))"], 2)  # fmt: skip
        code += ["", "    def forward(self, h):", "        for layer in self.layers:"]
        code += [*indent(lines, 3), "        return h"]
        setup = [data, f"net = Stack({count}, {d})", _optimizer(rng, "net.parameters()")]
        train = _train(rng, "opt", ["out = net(x)"], loss)
        both.append(["\n".join(code), "\n".join(setup), "\n".join(train)])
    grads = [f"net.layers[{i}].weight.grad" for i in range(count)]
    return _assemble(rng, name, found, "h", (both[0], both[1]), grads)


def _recurrent(rng: Random, name: str, bug: Bug = _bug) -> Injected:
    """A state carried through time steps."""
    n, d, _ = _data(rng)
    steps = rng.randint(2, 4)
    found = chain(rng, "h", ["xs[t] @ w_in + {v} @ w_rec"], 1, bug)
    function = rng.choice(["unroll", "run_cell", "encode"])
    loss = _loss(rng, "h")
    state = rng.getstate()
    both = []
    for lines in (found.right, found.wrong):
        rng.setstate(state)
        code = [f"def {function}(xs, h, w_in, w_rec):", "    for t in range(len(xs)):"]
        code += [*indent(lines, 2), "    return h"]
        setup = [f"xs = torch.randn({steps}, {n}, {d})", f"target = torch.rand({n}, {d})",
                 f"w_in = torch.randn({d}, {d}, requires_grad=True)",
                 f"w_rec = (torch.randn({d}, {d}) * 0.3).requires_grad_()",
                 _optimizer(rng, "[w_in, w_rec]")]  # fmt: skip
        forward = [f"h = {function}(xs, torch.zeros({n}, {d}), w_in, w_rec)"]
        both.append(
            ["\n".join(code), "\n".join(setup), "\n".join(_train(rng, "opt", forward, loss))]
        )
    return _assemble(rng, name, found, "h", (both[0], both[1]), ["w_in.grad", "w_rec.grad"])


def _sequential(rng: Random, name: str, bug: Bug = _bug) -> Injected:
    """A module that overwrites its input."""
    _, d, data = _data(rng)
    saves = rng.choice(["nn.Tanh()", "nn.Sigmoid()", "nn.Softplus()"])
    act = rng.choice(
        ["nn.ReLU({})", "nn.LeakyReLU(0.2{})", "nn.ELU(1.0{})", "nn.Hardtanh(-0.4, 0.4{})"]
    )
    right = act.format("")
    wrong = act.format("inplace=True" if act == "nn.ReLU({})" else ", inplace=True")
    style = rng.choice(["sequential", "attribute"])
    both = []
    loss = _loss(rng, "out")
    state = rng.getstate()
    for module, mark in ((right, ""), (wrong, MARK)):
        rng.setstate(state)
        if style == "sequential":
            code = ["net = nn.Sequential(", f"    nn.Linear({d}, {d}),", f"    {saves},",
                    f"    {module},{mark}", f"    nn.Linear({d}, {d}),", ")"]  # fmt: skip
            call = ["out = net(x)" + mark]
        else:
            code = ["class Block(nn.Module):", "    def __init__(self, width):"]
            code += indent(["super().__init__()", "self.inp = nn.Linear(width, width)",
                            f"self.gate = {saves}", f"self.act = {module}{mark}",
                            "self.out = nn.Linear(width, width)"], 2)  # fmt: skip
            code += ["", "    def forward(self, x):"]
            code += indent(["h = self.gate(self.inp(x))", f"h = self.act(h){mark}",
                            "return self.out(h)"], 2)  # fmt: skip
            code += ["", f"net = Block({d})"]
            call = ["out = net(x)"]
        setup = [data, _optimizer(rng, "net.parameters()")]
        both.append(["\n".join(code), "\n".join(setup), "\n".join(_train(rng, "opt", call, loss))])
    grads = ["[p.grad for p in net.parameters()][0]", "[p.grad for p in net.parameters()][-1]"]
    nothing = Chain([], [], [], [])
    return _assemble(rng, name, nothing, "h", (both[0], both[1]), grads)
