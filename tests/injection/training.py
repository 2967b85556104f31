"""Bugs in the order of a training loop: a step too early, a graph used again."""

from __future__ import annotations

from random import Random

from injection.case import MARK, Injected, indent, injected
from injection.inplace import IMPORTS


def _optimizer(rng: Random, params: str) -> str:
    kinds = ["SGD({}, lr=0.05)", "Adam({}, lr=0.01)", "SGD({}, lr=0.1, momentum=0.9)",
             "AdamW({}, lr=0.02)", "RMSprop({}, lr=0.01)"]  # fmt: skip
    return f"torch.optim.{rng.choice(kinds).format(params)}"


def _net(rng: Random, d: int, out: int | None = None) -> str:
    act = rng.choice(["nn.Tanh()", "nn.ReLU()", "nn.Sigmoid()", "nn.LeakyReLU(0.2)"])
    hidden = rng.randint(3, 6)
    return f"nn.Sequential(nn.Linear({d}, {hidden}), {act}, nn.Linear({hidden}, {out or d}))"


def _wrapped(rng: Random, head: str, lines: list[str], call: str) -> tuple[str, str]:
    """The lines as a function in an earlier cell with its call, or a comment and the lines."""
    return "\n".join([head, *indent(lines)]), call


def _looped(rng: Random, lines: list[str]) -> list[str]:
    rounds = rng.choice([0, 2, 3])
    return [f"for epoch in range({rounds}):", *indent(lines)] if rounds else lines


def _cells(seed: str, *cells: list[str]) -> list[str]:
    return [seed, *("\n".join(c) for c in cells if c)]


def step(rng: Random, number: int) -> Injected:
    """An optimizer's step (or a manual update) moved before a backward that needs the old values."""
    make = rng.choice([_adversarial, _adversarial, _two_losses, _manual, _actor, _trainer])
    return make(rng, f"step-{number}-{make.__name__[1:]}")


def _adversarial(rng: Random, name: str) -> Injected:
    seed, d, z = IMPORTS.format(seed=rng.randrange(99)), rng.randint(2, 4), rng.randint(2, 3)
    setup = [f"G = {_net(rng, z, d)}", f"D = {_net(rng, d, 1)}",
             f"optG = {_optimizer(rng, 'G.parameters()')}",
             f"optD = {_optimizer(rng, 'D.parameters()')}",
             f"real = torch.randn(6, {d})", f"noise = torch.randn(6, {z})"]  # fmt: skip
    helper: list[str] = []
    update = "optD.step()"
    if rng.random() < 0.35:
        helper = ["def update(optimizer):", "    optimizer.step()"]
        update = "update(optD)"
    loss_d = rng.choice(
        ["loss_d = F.softplus(D(fake.detach())).mean() + F.softplus(-D(real)).mean()",
         "loss_d = (D(real) - 1).pow(2).mean() + D(fake.detach()).pow(2).mean()"]
    )  # fmt: skip
    loss_g = rng.choice(
        ["loss_g = F.softplus(-d_fake).mean()", "loss_g = (d_fake - 1).pow(2).mean()"]
    )
    head = ["optD.zero_grad()", "optG.zero_grad()", "fake = G(noise)"]
    forward = ["d_fake = D(fake)", loss_g]
    clean = [] if rng.random() < 0.5 else ["total = loss_d.item()"]
    tail = ["loss_g.backward()", "optG.step()"]
    # The generator's loss belongs to the discriminator after its step.
    right = [*head, loss_d, "loss_d.backward()", update, *clean, *forward, *tail]
    wrong = [*head, *forward, loss_d, "loss_d.backward()", _mark(update, helper), *clean, *tail]
    if rng.random() < 0.5:  # or to the old one: then nothing of it reaches the discriminator
        tail = ["loss_g.backward(inputs=list(G.parameters()))", "optG.step()"]
        right = [*head, *forward, loss_d, "loss_d.backward()", tail[0], *clean, update, tail[1]]
        wrong = [*head, *forward, loss_d, "loss_d.backward()", _mark(update, helper), *clean, *tail]
    state = rng.getstate()
    both = []
    for lines in (right, wrong):
        rng.setstate(state)
        body = _looped(rng, lines)
        code = helper if lines is right else _marked_helper(helper)
        both.append(_cells(seed, code, setup, body))
    return injected(name, "step", both[0], both[1], ["G[0].weight.grad", "G[2].bias.grad"])


def _mark(line: str, helper: list[str]) -> str:
    return line if helper else line + MARK


def _marked_helper(helper: list[str]) -> list[str]:
    return [h + MARK if "step()" in h or " -= " in h else h for h in helper]


def _two_losses(rng: Random, name: str) -> Injected:
    seed, d = IMPORTS.format(seed=rng.randrange(99)), rng.randint(2, 4)
    setup = [f"net = {_net(rng, d, 2)}", f"opt = {_optimizer(rng, 'net.parameters()')}",
             f"x = torch.randn(5, {d})", "target = torch.randn(5)"]  # fmt: skip
    head = ["opt.zero_grad()", "out = net(x)", "loss_a = F.mse_loss(out[:, 0], target)",
            "loss_b = out[:, 1].pow(2).mean()"]  # fmt: skip
    first, second = "loss_a.backward(retain_graph=True)", "loss_b.backward()"
    right = [*head, first, second, "opt.step()"]
    wrong = [*head, first, "opt.step()" + MARK, second]
    state = rng.getstate()
    both = []
    for lines in (right, wrong):
        rng.setstate(state)
        both.append(_cells(seed, setup, _looped(rng, lines)))
    return injected(name, "step", both[0], both[1], ["net[0].weight.grad", "net[2].bias.grad"])


def _manual(rng: Random, name: str) -> Injected:
    seed, d = IMPORTS.format(seed=rng.randrange(99)), rng.randint(2, 4)
    setup = [f"w = torch.randn({d}, {d}, requires_grad=True)", f"b = torch.zeros({d}, requires_grad=True)",
             f"x = torch.randn(5, {d})", f"target = torch.randn(5, {d})"]  # fmt: skip
    update = ["with torch.no_grad():", f"    w -= 0.1 * w.grad{MARK}", "    b -= 0.1 * b.grad"]
    helper: list[str] = []
    if rng.random() < 0.4:
        helper = ["def descend(params, lr=0.1):", "    with torch.no_grad():", "        for p in params:",
                  "            p -= lr * p.grad"]  # fmt: skip
        update = ["descend([w, b])"]
    head = ["h = torch.tanh(x @ w + b)", "out = h @ w", "loss = (out - target).pow(2).mean()",
            "penalty = (out * w.sum()).mean()"]  # fmt: skip
    clear = ["w.grad = None", "b.grad = None"]
    first = "loss.backward(retain_graph=True)"
    right = [*head, first, "penalty.backward()", *update]
    wrong = [*head, first, *update, "penalty.backward()"]
    rounds = rng.choice([0, 2])
    both = []
    for lines in (right, wrong):
        body = [f"for i in range({rounds}):", *indent([*clear, *lines])] if rounds else lines
        both.append(_cells(seed, helper if lines is right else _marked_helper(helper), setup, body))
    return injected(name, "step", both[0], both[1], ["w.grad", "b.grad"])


def _actor(rng: Random, name: str) -> Injected:
    seed, d = IMPORTS.format(seed=rng.randrange(99)), rng.randint(2, 4)
    setup = [f"actor = {_net(rng, d, 2)}", f"critic = {_net(rng, d + 2, 1)}",
             f"opt_actor = {_optimizer(rng, 'actor.parameters()')}",
             f"opt_critic = {_optimizer(rng, 'critic.parameters()')}",
             f"state = torch.randn(6, {d})", "value = torch.randn(6, 1)"]  # fmt: skip
    critic_loss = (
        "critic_loss = F.mse_loss(critic(torch.cat([state, action.detach()], dim=1)), value)"
    )
    head = ["action = torch.tanh(actor(state))"]
    forward = ["q = critic(torch.cat([state, action], dim=1))", "actor_loss = -q.mean()"]
    mid = ["opt_critic.zero_grad()", "critic_loss.backward()"]
    last = ["opt_actor.zero_grad()", "actor_loss.backward()", "opt_actor.step()"]
    right = [*head, critic_loss, *mid, "opt_critic.step()", *forward, *last]
    wrong = [*head, *forward, critic_loss, *mid, "opt_critic.step()" + MARK, *last]
    state = rng.getstate()
    both = []
    for lines in (right, wrong):
        rng.setstate(state)
        if rng.random() < 0.5:
            arguments = "actor, critic, opt_actor, opt_critic, state, value"
            code = [f"def learn({arguments}):", *indent(lines), "    return actor_loss.item()"]
            both.append(_cells(seed, code, setup, _looped(rng, [f"learn({arguments})"])))
        else:
            both.append(_cells(seed, setup, _looped(rng, lines)))
    return injected(name, "step", both[0], both[1], ["actor[0].weight.grad", "actor[2].bias.grad"])


def _trainer(rng: Random, name: str) -> Injected:
    seed, d = IMPORTS.format(seed=rng.randrange(99)), rng.randint(2, 4)
    setup = [f"x = torch.randn(5, {d})", "target = torch.randn(5, 1)", f"trainer = Trainer({d})"]
    init = ["def __init__(self, width):",
            *indent([f"self.encoder = {_net(rng, d).replace(f'Linear({d}', 'Linear(width')}",
                     f"self.head = nn.Linear({d}, 1)",
                     f"self.opt = {_optimizer(rng, '[*self.encoder.parameters(), *self.head.parameters()]')}"])]  # fmt: skip
    head = ["self.opt.zero_grad()", "code = self.encoder(x)", "loss = F.mse_loss(self.head(code), target)",
            "sparsity = self.head(code).abs().mean() + code.abs().mean()"]  # fmt: skip
    first, second = "loss.backward(retain_graph=True)", "sparsity.backward()"
    right = [*head, first, second, "self.opt.step()"]
    wrong = [*head, first, "self.opt.step()" + MARK, second]
    rounds = rng.choice([1, 2])
    both = []
    for lines in (right, wrong):
        code = [
            "class Trainer:",
            *indent(init),
            "",
            "    def fit(self, x, target):",
            *indent(lines, 2),
        ]
        both.append(
            _cells(seed, code, setup, [f"for _ in range({rounds}):", "    trainer.fit(x, target)"])
        )
    grads = ["trainer.encoder[0].weight.grad", "trainer.head.weight.grad"]
    return injected(name, "step", both[0], both[1], grads)


def graph(rng: Random, number: int) -> Injected:
    """A graph that one backward has freed is used by another."""
    make = rng.choice([_state, _state, _hoisted, _penalty, _unretained, _module_state])
    return make(rng, f"graph-{number}-{make.__name__[1:]}")


def _state(rng: Random, name: str) -> Injected:
    """A recurrent state runs on between windows."""
    seed, d, hid = IMPORTS.format(seed=rng.randrange(99)), rng.randint(1, 3), rng.randint(3, 5)
    kind = rng.choice(["RNN", "GRU", "RNNCell", "GRUCell"])
    setup = [f"rnn = nn.{kind}({d}, {hid}{'' if 'Cell' in kind else ', batch_first=True'})",
             f"head = nn.Linear({hid}, 1)",
             f"opt = {_optimizer(rng, '[*rnn.parameters(), *head.parameters()]')}",
             f"windows = torch.randn({rng.randint(2, 4)}, 4, 3, {d})", "target = torch.randn(4, 1)"]  # fmt: skip
    state = rng.choice(["h", "state", "hidden"])
    if "Cell" in kind:
        start = f"{state} = torch.zeros(4, {hid})"
        forward = [f"{state} = rnn(window[:, 0], {state}){MARK}"]
        out = state
    else:
        start = f"{state} = torch.zeros(1, 4, {hid})"
        forward = [f"out, {state} = rnn(window, {state}){MARK}"]
        out = "out[:, -1]"
    cut = f"{state} = {state}.detach()"
    loss = [f"loss = F.mse_loss(head({out}), target)", "opt.zero_grad()", "loss.backward()"]
    step = ["opt.step()"] if rng.random() < 0.7 else []
    bodies = ([cut, *forward, *loss, *step], [*forward, *loss, *step])
    both = [_cells(seed, setup, [start, "for window in windows:", *indent(b)]) for b in bodies]
    return injected(
        name,
        "graph",
        both[0],
        both[1],
        ["head.weight.grad", "rnn.weight_hh" + ("" if "Cell" in kind else "_l0") + ".grad"],
    )


def _module_state(rng: Random, name: str) -> Injected:
    """The same with the state kept on the module."""
    seed, d, hid = IMPORTS.format(seed=rng.randrange(99)), rng.randint(1, 3), rng.randint(3, 5)
    attribute = rng.choice(["state", "memory", "hidden"])
    both = []
    state = rng.getstate()
    for cut in (True, False):
        rng.setstate(state)
        forward = [f"self.{attribute} = torch.tanh(self.inp(x) + self.rec(self.{attribute})){MARK}",
                   f"return self.head(self.{attribute})"]  # fmt: skip
        if cut:
            forward = [f"self.{attribute} = self.{attribute}.detach()", *forward]
        code = ["class Cell(nn.Module):", "    def __init__(self, width, hidden):",
                *indent(["super().__init__()", "self.inp = nn.Linear(width, hidden)",
                         "self.rec = nn.Linear(hidden, hidden)", "self.head = nn.Linear(hidden, 1)",
                         f"self.{attribute} = torch.zeros(1, hidden)"], 2),
                "", "    def forward(self, x):", *indent(forward, 2)]  # fmt: skip
        setup = [f"cell = Cell({d}, {hid})", f"opt = {_optimizer(rng, 'cell.parameters()')}",
                 f"batches = torch.randn({rng.randint(2, 4)}, 5, {d})"]  # fmt: skip
        body = ["for batch in batches:",
                *indent(["opt.zero_grad()", "loss = cell(batch).pow(2).mean()", "loss.backward()",
                         "opt.step()"])]  # fmt: skip
        both.append(_cells(seed, code, setup, body))
    return injected(
        name, "graph", both[0], both[1], ["cell.rec.weight.grad", "cell.head.weight.grad"]
    )


def _hoisted(rng: Random, name: str) -> Injected:
    """A forward pass that should be in the loop stands before it."""
    seed, d = IMPORTS.format(seed=rng.randrange(99)), rng.randint(2, 4)
    setup = [f"encoder = {_net(rng, d)}", f"head = nn.Linear({d}, 1)",
             f"opt = {_optimizer(rng, '[*encoder.parameters(), *head.parameters()]')}",
             f"x = torch.randn(6, {d})", "target = torch.randn(6, 1)"]  # fmt: skip
    line = "feat = encoder(x)"
    body = [
        "loss = F.mse_loss(head(feat), target)",
        "opt.zero_grad()",
        "loss.backward()",
        "opt.step()",
    ]
    rounds = rng.choice([2, 3])
    loop = f"for epoch in range({rounds}):"
    right = [loop, *indent([line, *body])]
    wrong = [line + MARK, loop, *indent(body)]
    both = [_cells(seed, setup, right), _cells(seed, setup, wrong)]
    return injected(name, "graph", both[0], both[1], ["encoder[0].weight.grad", "head.weight.grad"])


def _penalty(rng: Random, name: str) -> Injected:
    """A term of the loss is computed once."""
    seed, d = IMPORTS.format(seed=rng.randrange(99)), rng.randint(2, 4)
    setup = [f"net = {_net(rng, d, 1)}", f"opt = {_optimizer(rng, 'net.parameters()')}",
             f"x = torch.randn(6, {d})", "target = torch.randn(6, 1)"]  # fmt: skip
    line = rng.choice(["reg = 0.01 * sum(p.pow(2).sum() for p in net.parameters())",
                       "reg = 0.1 * net[0].weight.pow(2).sum()",
                       "reg = net[2].weight.norm()"])  # fmt: skip
    body = [
        "loss = F.mse_loss(net(x), target) + reg",
        "opt.zero_grad()",
        "loss.backward()",
        "opt.step()",
    ]
    loop = f"for epoch in range({rng.choice([2, 3])}):"
    right = [loop, *indent([line, *body])]
    wrong = [line + MARK, loop, *indent(body)]
    both = [_cells(seed, setup, right), _cells(seed, setup, wrong)]
    return injected(name, "graph", both[0], both[1], ["net[0].weight.grad", "net[2].weight.grad"])


def _unretained(rng: Random, name: str) -> Injected:
    """Two losses share a part of the graph; the first backward should keep it."""
    seed, d = IMPORTS.format(seed=rng.randrange(99)), rng.randint(2, 4)
    setup = [f"trunk = {_net(rng, d)}", f"a, b = nn.Linear({d}, 1), nn.Linear({d}, 1)",
             f"x = torch.randn(6, {d})"]  # fmt: skip
    head = [
        "feat = torch.tanh(trunk(x))",
        "loss_a = a(feat).pow(2).mean()",
        "loss_b = (b(feat) - 1).pow(2).mean()",
    ]
    right = [*head, "loss_a.backward(retain_graph=True)", "loss_b.backward()"]
    # At fault is the backward that frees, or the shared part.
    wrong = [head[0] + MARK, *head[1:], "loss_a.backward()" + MARK, "loss_b.backward()" + MARK]
    both = [_cells(seed, setup, right), _cells(seed, setup, wrong)]
    return injected(
        name, "graph", both[0], both[1], ["trunk[0].weight.grad", "a.weight.grad", "b.weight.grad"]
    )
