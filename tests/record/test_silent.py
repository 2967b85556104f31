"""What the recorder says about programs that go wrong without a message."""

from __future__ import annotations

import textwrap

import pytest
import torch
from silent_programs import HEAD, PROGRAMS, Silent
from watching import session, signals


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_it_is_found_with_its_lines(program: Silent) -> None:
    found = signals(program.cells)
    assert [s.name for s in found] == [program.signal]
    told = {
        role: [m.place.source for m in found[0].moments.get(role, ())] for role in program.lines
    }
    assert {role: line[:1] for role, line in told.items()} == {
        role: [line] for role, line in program.lines.items()
    }
    if program.way:
        assert found[0].evidence["way"] == program.way or program.way == "number"


def in_function(cells: tuple[str, ...]) -> tuple[str, ...]:
    """A program whose models, optimizers and tensors are gone when it has ended."""
    body = textwrap.indent("\n".join(cells), "    ")
    return (f"def main():\n{body}\nmain()",)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "program", [p for p in PROGRAMS if "copies" not in p.name], ids=lambda p: p.name
)
def test_it_is_found_in_a_function(program: Silent) -> None:
    (found,) = signals(in_function(program.cells))
    assert found.name == program.signal
    told = {role: found.moments[role][0].place.source for role in program.lines}
    assert told == program.lines
    if found.name in ("plain-list-of-layers", "optimizer-misses-parameters"):
        blocks = ("self.blocks[0].weight", "self.fields.blocks['a'].weight")
        names = (*blocks, "0.weight", "1.weight", "weight", "scale")
        assert found.evidence["names"][0] in names


def test_gradients_from_before_the_watch_are_not_spoken_of() -> None:
    """Another model was trained in an unwatched cell; this optimizer holds a head not used yet."""
    other = torch.nn.Linear(3, 1)
    other(torch.ones(1, 3)).sum().backward()
    cells = (
        HEAD + "body, spare = nn.Linear(3, 1), nn.Linear(3, 1)\n"
        "opt = torch.optim.SGD([*body.parameters(), *spare.parameters()], lr=0.1)",
        "for _ in range(2):\n    opt.zero_grad()\n    body(torch.ones(1, 3)).sum().backward()\n"
        "    opt.step()",
    )
    assert signals(cells, other=other) == []
    assert signals(cells, other=other, sure=False) == []


def test_weights_of_the_losses_that_no_optimizer_has() -> None:
    cells = (
        HEAD + "net = nn.Linear(3, 2)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "weights = [torch.zeros(1, requires_grad=True) for _ in range(2)]",
        "for _ in range(3):\n    opt.zero_grad()\n    parts = net(torch.ones(4, 3)).mean(0)\n"
        "    sum(p.square() * w.exp() + w for p, w in zip(parts, weights)).sum().backward()\n"
        "    opt.step()",
    )
    (found,) = signals(cells)
    assert (found.name, found.evidence["count"]) == ("optimizer-misses-parameters", 2)


@pytest.mark.parametrize(
    "loss",
    [
        "net(x).square().sum()",  # data that need not ask for a gradient
        "(net(x) - 2 * torch.autograd.grad(net(x).sum(), x, create_graph=True)[0]).sum()",
    ],
)
def test_inputs_that_ask_for_a_gradient_are_not_weights(loss: str) -> None:
    cells = (
        HEAD + "net = nn.Linear(3, 3)\nx = torch.ones(4, 3, requires_grad=True)\n"
        "opt = torch.optim.SGD(net.parameters(), lr=0.1)",
        f"for _ in range(3):\n    opt.zero_grad()\n    loss = {loss}\n    loss.backward()\n"
        "    opt.step()",
    )
    assert signals(cells) == []


SINGLE = """
for _ in range(3):
    for part in torch.randn(3, 2, 3):
        opt.zero_grad()
        net(part).square().mean().backward()
        {use}
    opt.step()
"""
SKIPPED = """
for number in range(6):
    opt.zero_grad()
    net(torch.ones(1, 3)).square().mean().backward()
    if number > 2:
        opt.step()
"""
TWO_LOSSES = """
for _ in range(3):
    for sign in (1, -1):
        opt.zero_grad()
        (sign * net(torch.ones(1, 3))).mean().backward()
        opt.step()
"""


@pytest.mark.parametrize(
    "rounds", [SINGLE.format(use="kept = net.weight.grad.clone()"), SKIPPED, TWO_LOSSES]
)
def test_gradients_of_rounds_that_are_used_or_left_out_once(rounds: str) -> None:
    """Each is read before it is cleared, or the first steps are left out, as a scaler does."""
    cells = (
        HEAD + "net = nn.Linear(3, 1)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)",
        rounds,
    )
    assert signals(cells) == []


def test_what_a_closure_trains_alone_is_not_stepped_in_vain() -> None:
    """An image is fitted through a network that is not frozen, in one step."""
    cells = (
        HEAD + "net = nn.Linear(3, 1)\nimage = torch.ones(2, 3, requires_grad=True)\n"
        "opt = torch.optim.LBFGS([image])",
        "def closure():\n    opt.zero_grad()\n    loss = net(image).square().sum()\n"
        "    loss.backward()\n    return loss\nopt.step(closure)",
    )
    assert signals(cells) == []


def test_the_parameter_of_a_fused_step_is_known() -> None:
    cells = next(p.cells for p in PROGRAMS if p.name == "fused step")
    (found,) = signals(cells)
    assert found.evidence["parameter"] is True


MEANT = {
    "a frozen part in the optimizer, another model's gradients left": (
        HEAD + "net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))\nvgg = nn.Linear(1, 1)\n"
        "opt = torch.optim.SGD(net.parameters(), lr=0.1)\nnet[0].requires_grad_(False)",
        "for _ in range(2):\n    opt.zero_grad()\n    vgg(net(torch.ones(2, 3))).sum().backward()\n"
        "    opt.step()",
    ),
    "hidden on purpose": (
        HEAD + "class Loss(nn.Module):\n    def __init__(self, net):\n        super().__init__()\n"
        "        self.kept = [net]\n        self.scale = nn.Parameter(torch.ones(1))\n"
        "    def forward(self, x):\n        return self.scale * self.kept[0](x).mean()",
        "loss = Loss(nn.Linear(3, 1))\nopt = torch.optim.SGD(loss.parameters(), lr=0.1)\n"
        "for _ in range(2):\n    opt.zero_grad()\n    loss(torch.ones(1, 3)).backward()\n"
        "    opt.step()",
    ),
    "features without gradient": (
        HEAD + "body, head = nn.Linear(3, 3), nn.Linear(3, 1)\n"
        "opt = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)",
        "for _ in range(2):\n    with torch.no_grad():\n        h = body(torch.ones(1, 3))\n"
        "    opt.zero_grad()\n    head(h).sum().backward()\n    opt.step()",
    ),
    "a number that is only watched": (
        HEAD + "a, b = nn.Linear(3, 4), nn.Linear(3, 1)\n"
        "opt = torch.optim.SGD([*a.parameters(), *b.parameters()], lr=0.1)\n"
        "x, best = torch.randn(5, 3), 0.0",
        "for _ in range(2):\n    opt.zero_grad()\n    score = b(x).mean().item()\n"
        "    best = max(best, score)\n    a(x).pow(2).mean().backward()\n    opt.step()",
    ),
    "a rounding that the gradient passes": (
        HEAD + "w = torch.randn(3, requires_grad=True)",
        "h = w * 2\nh.data = h.data.round()\n(h + 1).sum().backward()",
    ),
    "a helper of one's own for the new value": (
        HEAD + "w = torch.randn(3, requires_grad=True)\ndef binary(t):\n    return t.sign()",
        "h = w * 2\nh.data = binary(h.data)\n(h + 1).sum().backward()",
    ),
    "a head alone, and flags that were switched on before": (
        HEAD + "body, head = nn.Linear(3, 3), nn.Linear(3, 1)\nbody.requires_grad_(False)\n"
        "body.requires_grad_(True)\nopt = torch.optim.SGD(head.parameters(), lr=0.1)",
        "for _ in range(2):\n    opt.zero_grad()\n    h = body(torch.ones(1, 3))\n"
        "    head(h).sum().backward()\n    opt.step()",
    ),
    "flags that were on already are switched on": (
        HEAD + "net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))\n"
        "opt = torch.optim.SGD(net[1].parameters(), lr=0.1)\nnet.requires_grad_(True)",
        "for _ in range(2):\n    opt.zero_grad()\n    net(torch.ones(1, 3)).sum().backward()\n"
        "    opt.step()",
    ),
    "a head alone": (
        HEAD + "body, head = nn.Linear(3, 3), nn.Linear(3, 1)\n"
        "opt = torch.optim.SGD(head.parameters(), lr=0.1)",
        "for _ in range(2):\n    opt.zero_grad()\n    h = body(torch.ones(1, 3))\n"
        "    head(h).sum().backward()\n    opt.step()",
    ),
}


@pytest.mark.parametrize("name", sorted(MEANT))
def test_what_may_be_meant_is_a_note_and_no_alarm(name: str) -> None:
    assert signals(MEANT[name]) == []
    assert len(signals(MEANT[name], sure=False)) == 1
    assert signals(in_function(MEANT[name])) == []


def test_what_is_trained_later_is_not_missed() -> None:
    """In a function the optimizers are looked at before it has returned."""
    lists = next(p.cells for p in PROGRAMS if p.name == "list filled by append")[0]
    train = (
        "for _ in range(3):\n    {0}.zero_grad()\n    net(x).mean().backward()\n    {0}.step()\n"
    )
    cells = (
        lists,
        "net, x = Net(), torch.ones(2, 3)\nopt = torch.optim.Adam(net.parameters())",
        train.format("opt"),
        "late = torch.optim.Adam([p for b in net.blocks for p in b.parameters()])",
        train.format("late"),
    )
    assert signals(in_function(cells)) == []


_TRAINED = """for _ in range(3):
    {0}.zero_grad()
    {1}(torch.ones(2, 3)).square().sum().backward()
    {0}.step()
"""
_ADVERSARIES = """for _ in range(3):
    fake = g(torch.ones(2, 3))
    od.zero_grad()
    d(fake.detach()).sum().backward()
    od.step()
    og.zero_grad()
    (-d(fake)).sum().backward()
    og.step()
"""
_COPIED = """for _ in range(3):
    opt.zero_grad()
    h = body(torch.ones(2, 3))
    fast = copy.deepcopy(head)
    grads = torch.autograd.grad(fast(h).sum(), list(fast.parameters()), create_graph=True)
    for p, g in zip(fast.parameters(), grads):
        p.data = p.data - 0.1 * g
    (head(h) + fast(h)).square().sum().backward()
    opt.step()
"""
#: The cells, and which of them shows an optimizer that has the wrong parameters, and whose.
OWNERS = {
    "a model made again, and others": (
        (
            f"{HEAD}net = nn.Linear(3, 1)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)",
            _TRAINED.format("opt", "net"),
            f"net = nn.Linear(3, 1)\n{_TRAINED.format('opt', 'net')}",
            "other = nn.Linear(3, 1)\nlate = torch.optim.SGD(other.parameters(), lr=0.1)\n"
            + _TRAINED.format("late", "other"),
        ),
        ["opt"],
    ),
    "one of two adversaries made again": (
        (
            f"{HEAD}g, d = nn.Linear(3, 3), nn.Linear(3, 1)\n"
            "og, od = (torch.optim.Adam(m.parameters()) for m in (g, d))",
            _ADVERSARIES,
            f"d = nn.Linear(3, 1)\n{_ADVERSARIES}",
        ),
        ["od"],
    ),
    "a model whose gradients are looked at, and another": (
        (
            f"{HEAD}probe, net = nn.Linear(3, 1), nn.Linear(3, 1)\n"
            "probe(torch.ones(2, 3)).sum().backward()",
            "spare = nn.Linear(2, 2)\nopt = torch.optim.SGD([*net.parameters(), "
            f"*spare.parameters()], lr=0.1)\n{_TRAINED.format('opt', 'net')}",
        ),
        [],
    ),
    "copies for tasks": (
        (
            f"{HEAD}import copy\nbody, head = nn.Linear(3, 4), nn.Linear(4, 1)\n"
            "opt = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)",
            _COPIED,
        ),
        [],
    ),
}


@pytest.mark.parametrize("name", OWNERS)
def test_an_optimizer_is_held_against_its_own_model_alone(name: str) -> None:
    cells, wrong = OWNERS[name]
    names: dict[str, object] = {"__name__": "__main__"}
    found, _ = session(cells, names)
    assert [s.name for s in found] == ["optimizer-misses-parameters"] * len(wrong)
    assert [s.evidence["optimizer"]() for s in found] == [names[w] for w in wrong]
    assert signals(cells, sure=False) == []


def test_the_model_of_inputs_that_are_trained_is_not_missed_where_one_of_them_is_cut() -> None:
    cells = (
        f"{HEAD}net = nn.Linear(3, 1)\nx, y = (torch.rand(4, n, requires_grad=True) "
        "for n in (3, 1))\nopt = torch.optim.SGD([x, y], lr=0.1)",
        "for _ in range(2):\n    opt.zero_grad()\n"
        "    (net(x) - y.detach()).square().sum().backward()\n    opt.step()",
    )
    assert signals(cells) == []


def test_a_copy_for_each_task_is_not_taken_for_what_the_optimizer_had() -> None:
    cells = (
        f"{HEAD}import copy\nnet = nn.Linear(3, 1)\n"
        "opt = torch.optim.SGD(net.parameters(), lr=0.1)",
        _TRAINED.format("opt", "fast").replace("\n", "\n    fast = copy.deepcopy(net)\n", 1),
    )
    (found,) = signals(cells)
    assert found.name == "graph-cut"


FINE = {
    "noise is added": "h.data += torch.randn(3)",
    "noise is added, by assignment": "h.data = h.data + torch.randn(3)",
    "by a method": "h.data.sub_(0.5)",
    "a leaf": "w.data.mul_(0.5)",
    "nothing that requires a gradient": "x.data.mul_(0.5)",
    "nobody uses it any more": "loss = h.sum()\nh.data.mul_(0.5)\nh = loss",
    "used without a gradient": "g = h\nh = w * 3\ng.data.mul_(0.5)\ng.detach().sum()",
}


@pytest.mark.parametrize("name", sorted(FINE))
def test_a_write_that_leaves_the_gradient_right_is_not_spoken_of(name: str) -> None:
    cells = (
        HEAD + "w, x = torch.randn(3, requires_grad=True), torch.randn(3)",
        f"h = w + x\n{FINE[name]}\n(h + x).sum().backward()",
    )
    assert signals(cells) == []
    assert signals(cells, sure=False) == []


_GIVES = """\
class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, rule):
        ctx.save_for_backward(x, w)
        ctx.rule = rule
        return rule(x * w)
    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            torch.autograd.backward(ctx.rule(x * w), grad)
        return x.grad, None, None
from torch.utils.checkpoint import checkpoint
a, b = nn.Linear(3, 3), nn.Linear(3, 1)
w = nn.Parameter(torch.ones(3))
opt = torch.optim.SGD([*a.parameters(), *b.parameters(), w], lr=0.1)
"""
#: A custom Function reads parameters that are no inputs, and serves them, or gives none by choice.
SERVED = {
    "its backward fills their gradients, and gives an input none": "Scaled.apply(h, w, b)",
    "a reentrant checkpoint": "checkpoint(lambda x: b(x * w), h, use_reentrant=True)",
}


@pytest.mark.parametrize("name", sorted(SERVED))
def test_what_a_custom_function_serves_is_not_spoken_of(name: str) -> None:
    cells = (
        HEAD + _GIVES,
        "for _ in range(3):\n    opt.zero_grad()\n    h = a(torch.ones(2, 3))\n"
        f"    {SERVED[name]}.sum().backward()\n    opt.step()",
    )
    assert signals(cells) == []
    assert signals(cells, sure=False) == []


_TRAIN = "for _ in range(3):\n    opt.zero_grad()\n    {loss}.backward()\n    opt.step()"
_UNUSED = (
    HEAD + "emb, net = nn.Embedding(9, 3), nn.Linear(3, 1)\n{made}\n"
    "opt = torch.optim.SGD([*emb.parameters(), *net.parameters(){more}], lr=0.1)\n"
)
#: What is trained was given its first value, and what is not trained is used beside.
BEGUN = {
    "a part of a table": ("p = nn.Parameter(emb.weight[:5].clone())", ", p", "net(p).sum()"),
    "its memory": ("p = nn.Parameter(emb.weight.data[:5])", ", p", "net(p).sum()"),
    "a disturbance": ("p = torch.zeros(9, 3, requires_grad=True)", "", "net(p + 1).sum()"),
}


@pytest.mark.parametrize("name", sorted(BEGUN))
def test_a_leaf_that_stays_is_not_spoken_of(name: str) -> None:
    made, more, loss = BEGUN[name]
    cells = (_UNUSED.format(made=made, more=more) + _TRAIN.format(loss=loss),)
    assert signals(cells) == []


@pytest.mark.parametrize(("second", "again"), [(".detach()", [False, True]), ("", [False])])
def test_a_cut_behind_another_says_so(second: str, again: list[bool]) -> None:
    cells = (
        HEAD + "a, b, c = nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 1)\n"
        "opt = torch.optim.SGD([p for m in (a, b, c) for p in m.parameters()], lr=0.1)",
        "for _ in range(2):\n    opt.zero_grad()\n"
        "    h = torch.tensor(a(torch.ones(2, 3)).tolist())\n"
        f"    loss = c(b(h){second}).sum()\n    loss.backward()\n    opt.step()\n    loss.item()",
    )
    assert sorted(s.evidence["cut_again"] for s in signals(cells)) == again


@pytest.mark.parametrize("kind", [torch.nn.Linear, torch.optim.SGD])
def test_what_is_half_made_hides_nothing(kind: type) -> None:
    half = kind.__new__(kind)
    program = next(p for p in PROGRAMS if p.name == "replaced layer")
    assert len(signals(in_function(program.cells))) == 1
    assert isinstance(half, kind)


TAP = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.act, self.last = nn.Linear(3, 4), nn.ReLU(inplace=True), nn.Linear(4, 1)
    def forward(self, x):
        return self.last(self.act(self.first(x)))
class Tap:
    def __init__(self, layer):
        self.seen = {}
        layer.register_forward_hook(self.keep("h"))
    def keep(self, name):
        def hook(module, inputs, output):
            self.seen[name] = output
        return hook
net = Net()
tap = Tap(net.first)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
"""
TRAINED = (
    "for _ in range(2):\n    out = net(torch.ones(2, 3))\n"
    "    loss = out.sum() + tap.seen['h'].square().sum()\n"
    "    opt.zero_grad()\n    loss.backward()\n    opt.step()"
)


def test_what_a_hook_keeps_and_a_later_layer_writes() -> None:
    (found,) = signals((HEAD + TAP, TRAINED))
    assert (found.name, found.evidence["way"]) == ("kept-output-overwritten", "kept")
    assert found.evidence["place"].source == "self.seen[name] = output"
    (write,) = found.moments["changed"]
    assert write.place.source == "return self.last(self.act(self.first(x)))"


def test_a_list_that_a_method_of_an_object_fills() -> None:
    made = TAP.replace("self.seen = {}", "self.seen = []").replace('self.keep("h")', "self")
    made = made.replace(
        "def keep(self, name):",
        "def __call__(self, m, i, y):\n        self.seen.append(y)\n    def no(self, name):",
    )
    (found,) = signals((HEAD + made, TRAINED.replace("tap.seen['h']", "tap.seen[-1]")))
    assert found.evidence["place"].source == "self.seen.append(y)"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("= output", "= output.clone()"),
        ("inplace=True", "inplace=False"),
        ("Tap(net.first)", "Tap(net.act)"),
        ("Tap(net.first)", "Tap(net.last)"),
        ("Tap(net.first)", "Tap(net)"),
    ],
)
def test_what_a_hook_keeps_unwritten(old: str, new: str) -> None:
    assert old in TAP
    assert signals((HEAD + TAP.replace(old, new), TRAINED)) == []


def test_where_nothing_is_trained_it_is_no_alarm() -> None:
    cells = (HEAD + TAP, TRAINED.replace("    opt.step()", "    pass"))
    assert signals(cells) == []
    assert [s.name for s in signals(cells, sure=False)] == ["kept-output-overwritten"]
