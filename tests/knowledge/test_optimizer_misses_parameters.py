"""Parameters that are new objects when the optimizer steps: exchanged, or made from others.

A row is a notebook, the cause, the first rewrite, and the lines that it brings in.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from knowledge.played import edited, play
from knowledge.test_cases import run
from notebook import installed

from autograd_explain.render.topic_content import cells_of

TORCH = "# %%\nimport torch\nfrom torch import nn\ntorch.manual_seed(0)\n"
STEPS = """
# %%
for _ in range(3):
    opt.zero_grad()
    loss = net(torch.rand(4, 3)).square().mean()
    loss.backward()
    opt.step()
"""
MADE = """
class Hyper(nn.Module):
    def __init__(self):
        super().__init__()
        self.gen = nn.Linear(2, 15)
        self.first, self.last = nn.Linear(3, 5), nn.Linear(5, 1)
        self.z = torch.ones(2)
    def forward(self, x):
"""
HELD = 'held = {id(p) for group in opt.param_groups for p in group["params"]}'
LATE = (
    'opt.add_param_group({{"params": '
    "[p for p in {0}.parameters() if p.requires_grad and id(p) not in held]}})"
)
PROGRAMS: dict[str, tuple[str, str, str, list[str]]] = {
    "a list of parameters that is older than the layer": (
        """
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
trained = [p for p in net.parameters() if p.requires_grad]
opt = torch.optim.SGD(trained, lr=0.1)
# %%
net[2] = nn.Linear(4, 1)
""",
        "optimizer_misses_parameters",
        "move_optimizer",
        [],
    ),
    "layers of an object that is no module": (
        """
class Fields:
    def __init__(self):
        "Two layers."
        self.blocks = {k: nn.Linear(3, 3) for k in "ab"}
        self.more = [nn.Linear(3, 3)]
    def __call__(self, x):
        return sum(block(x) for block in (*self.blocks.values(), *self.more))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fields, self.out = Fields(), nn.Linear(3, 1)
    def forward(self, x):
        return self.out(self.fields(x))
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
""",
        "plain_list_of_layers",
        "module_class",
        [
            "class Fields(nn.Module):",
            'self.blocks = nn.ModuleDict({k: nn.Linear(3, 3) for k in "ab"})',
            "self.more = nn.ModuleList([nn.Linear(3, 3)])",
        ],
    ),
    "a layer kept by an object that is no module": (
        """
class Gate:
    def __init__(self, n):
        self.first, self.last = nn.Linear(n, n), nn.Linear(n, n)
    def gated(self, x):
        return self.last(torch.tanh(self.first(x)))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.out = Gate(3), nn.Linear(3, 1)
    def forward(self, x):
        return self.out(self.gate.gated(x))
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
""",
        "plain_list_of_layers",
        "module_class",
        ["class Gate(nn.Module):"],
    ),
    "a function makes the optimizer and another exchanges the layer": (
        """
def optimizer_of(model, lr=0.1):
    groups = [{"params": [p for p in model.parameters() if p.dim() > 1]},
              {"params": [p for p in model.parameters() if p.dim() <= 1], "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=lr)
def widen(model):
    model[2] = nn.Linear(4, 2)
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
opt = optimizer_of(net)
# %%
widen(net)
""",
        "optimizer_misses_parameters",
        "move_optimizer",
        [],
    ),
    "a library makes the optimizer, by a name that says nothing": (
        """
import functools
get = functools.partial(torch.optim.SGD, lr=0.1)
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
opt = get(net.parameters())
# %%
net[2] = nn.Linear(4, 2)
""",
        "optimizer_misses_parameters",
        "move_optimizer",
        [],
    ),
    "a method makes the optimizer": (
        """
class Tuner:
    def __init__(self, net):
        self.net = net
        self.opt = self.configure(self.net)
        self.net[2] = nn.Linear(4, 2)
    def configure(self, net):
        made = torch.optim.SGD(net.parameters(), lr=0.1)
        return made
tuner = Tuner(nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)))
net, opt = tuner.net, tuner.opt
""",
        "optimizer_misses_parameters",
        "move_optimizer",
        [],
    ),
    "a method replaces the layer after the optimizer": (
        """
class Tuner:
    def __init__(self, net):
        self.net = net
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.widen()
    def widen(self):
        self.net.add_module("2", nn.Linear(4, 1))
tuner = Tuner(nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)))
net, opt = tuner.net, tuner.opt
""",
        "optimizer_misses_parameters",
        "move_optimizer",
        [],
    ),
    "a parameter assigned after the optimizer": (
        """
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
# %%
net[2].weight = nn.Parameter(torch.zeros(1, 4))
""",
        "optimizer_misses_parameters",
        "move_optimizer",
        [],
    ),
    "state assigned after the optimizer": (
        """
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
state = {k: v.clone() for k, v in net.state_dict().items()}
# %%
net.load_state_dict(state, strict=True, assign=True)
""",
        "optimizer_misses_parameters",
        "no_assign",
        ["net.load_state_dict(state, strict=True)"],
    ),
    "weight norm after the optimizer": (
        """
from torch.nn.utils import weight_norm
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
weight_norm(net[0])
""",
        "optimizer_misses_parameters",
        "move_optimizer",
        [],
    ),
    "what it holds was frozen and an adapter put in": (
        """
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
# %%
def adapted(base):
    base.requires_grad_(False)
    base[0] = nn.Sequential(base[0], nn.Linear(4, 4))
    return base
net = adapted(net)
""",
        "optimizer_misses_parameters",
        "move_optimizer",
        [],
    ),
    "parameters unfrozen after the optimizer": (
        """
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
for p in net[0].parameters():
    p.requires_grad = False
opt = torch.optim.Adam([p for p in net.parameters() if p.requires_grad])
# %%
for layer in net.children():
    for p in layer.parameters():
        p.requires_grad = True
""",
        "optimizer_misses_parameters",
        "add_group",
        [HELD, LATE.format("net")],
    ),
    "a method unfreezes what its optimizer does not hold": (
        """
class Tuner:
    def __init__(self, net):
        self.net = net
        self.net[0].requires_grad_(False)
        self.opt = torch.optim.SGD(filter(lambda p: p.requires_grad, net.parameters()), lr=0.1)
    def unfreeze(self):
        self.net[0].requires_grad_(True)
tuner = Tuner(nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)))
net, opt = tuner.net, tuner.opt
# %%
tuner.unfreeze()
""",
        "optimizer_misses_parameters",
        "add_group",
        [HELD.replace("opt", "self.opt"), LATE.replace("opt", "self.opt").format("self.net[0]")],
    ),
    "a helper unfreezes in the middle of the training": (
        """
def thaw(model, switch=True):
    for p in model.parameters():
        p.requires_grad_(switch)
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
thaw(net[0], False)
opt = torch.optim.Adam([{"params": filter(lambda p: p.requires_grad, net.parameters())}])
for step in range(3):
    if step == 1:
        thaw(net)
    opt.zero_grad()
    net(torch.rand(4, 3)).square().mean().backward()
    opt.step()
""",
        "optimizer_misses_parameters",
        "add_group",
        [HELD, LATE.format("net")],
    ),
    "another method puts a layer in": (
        """
class Tuner:
    def __init__(self, net, lr=0.1):
        self.net = net
        self.opt = torch.optim.SGD(net[2].parameters(), lr=lr)
    def widen(self, n):
        self.net[2] = nn.Linear(4, n)
tuner = Tuner(nn.Sequential(nn.Linear(3, 4).requires_grad_(False), nn.Tanh(), nn.Linear(4, 2)))
net, opt = tuner.net, tuner.opt
# %%
tuner.widen(3)
""",
        "optimizer_misses_parameters",
        "add_new",
        [HELD.replace("opt", "self.opt"), LATE.replace("opt", "self.opt").format("self.net[2]")],
    ),
    "another method asks the model for a new layer": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(3, 4).requires_grad_(False), nn.Linear(4, 2)
    def reset(self, n):
        head = nn.Linear(4, n)
        self.head = head
    def forward(self, x):
        return self.head(torch.tanh(self.body(x)))
class Tuner:
    def __init__(self, lr=0.1):
        self.net = Net()
        head = [p for p in self.net.parameters() if p.requires_grad]
        self.opt = torch.optim.Adam(head, lr=lr)
    def adapt(self, n):
        self.net.reset(n)
        return self
# %%
tuner = Tuner().adapt(3)
net, opt = tuner.net, tuner.opt
""",
        "optimizer_misses_parameters",
        "add_new",
        [HELD.replace("opt", "self.opt"), LATE.replace("opt", "self.opt").format("self.net")],
    ),
    "layer's weight computed in forward": (
        MADE
        + """
        self.first.weight = nn.Parameter(self.gen(self.z).view(5, 3))
        return self.last(torch.tanh(self.first(x)))
net = Hyper()
opt = torch.optim.Adam(net.parameters())
""",
        "silent_cut",
        "argument",
        [
            "weight = self.gen(self.z).view(5, 3)",
            'return self.last(torch.tanh(torch.func.functional_call(self.first, {"weight": '
            "weight}, (x,))))",
        ],
    ),
    "parameters that take their first values from the data": (
        """
class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.loc, self.scale, self.ready = nn.Parameter(torch.zeros(3)), None, False
        self.scale = nn.Parameter(torch.ones(3))
    def begin(self, x):
        with torch.no_grad():
            self.loc = nn.Parameter(-x.mean(0))
        self.scale = nn.Parameter(x.std(0))
        self.ready = True
    def forward(self, x):
        if not self.ready:
            self.begin(x)
        return (x + self.loc) * self.scale
net = nn.Sequential(Norm(), nn.Linear(3, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
""",
        "optimizer_misses_parameters",
        "written_into",
        ["self.loc.copy_(-x.mean(0))", "self.scale.copy_(x.std(0))"],
    ),
    "a method that keeps what a function gives back": (
        """
def load(model, size):
    model.last = nn.Linear(4, size)
    return ["last"]
class Tuner:
    def __init__(self, lr=0.1):
        self.net = nn.Sequential()
        self.net.first, self.net.last = nn.Linear(3, 4), nn.Linear(4, 1)
        self.opt = torch.optim.SGD(self.net.parameters(), lr=lr)
    def load(self):
        self.loaded = load(self.net, 2)
tuner = Tuner()
tuner.load()
net, opt = tuner.net, tuner.opt
""",
        "optimizer_misses_parameters",
        "add_new",
        [HELD.replace("opt", "self.opt"), LATE.replace("opt", "self.opt").format("self.net")],
    ),
    "a rate that an update without recording uses": (
        """
class Adapted(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.rand(3, 1))
        self.rate = nn.Parameter(torch.full((3, 1), 0.1))
    def forward(self, x):
        fast = {"w": self.w.clone()}
        inner = (x @ fast["w"]).square().mean()
        grads = torch.autograd.grad(inner, list(fast.values()), create_graph=True)
        with torch.no_grad():
            for (key, v), g in zip(fast.items(), grads):
                v -= self.rate * g
        return x @ fast["w"]
net = Adapted()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
""",
        "silent_cut",
        "record",
        [
            "for (key, v), g in zip(fast.items(), grads):",
            "v -= self.rate * g",
        ],
    ),
    "own weight computed in a method": (
        """
class Low(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Parameter(torch.rand(1, 2)), nn.Parameter(torch.rand(2, 3))
        self.bias = nn.Parameter(torch.zeros(1))
    def forward(self, x):
        self.weight = nn.Parameter(self.a @ self.b)
        return nn.functional.linear(x, self.weight, self.bias)
net = Low()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
""",
        "silent_cut",
        "argument",
        ["weight = self.a @ self.b", "return nn.functional.linear(x, weight, self.bias)"],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    text, cause, fix, lines = PROGRAMS[name]
    cells = cells_of(TORCH + "# %%" + text + STEPS)
    found = play(cells, watched=True)
    assert found.trouble == ""
    assert found.diagnosis is not None, found.output
    finding, rewrites = found.diagnosis.finding, found.diagnosis.rewrites
    assert finding.cause == cause
    assert rewrites[0].fix == fix
    repaired = edited(cells, rewrites[0])
    before = [line for cell in cells for line in cell.splitlines()]
    new = [line.strip() for cell in repaired for line in cell.splitlines() if line not in before]
    assert new == lines
    run(repaired)
    assert play(repaired, watched=True).diagnosis is None


HELD_ELSEWHERE = """
class Stepper:
    def __init__(self, optimizer):
        self.optimizer = optimizer
        self.zero_grad, self.step = optimizer.zero_grad, optimizer.step
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
opt = Stepper(opt)
# %%
net[2] = nn.Linear(4, 1)
"""


def test_an_optimizer_that_another_object_holds_is_found_by_its_class() -> None:
    cells = cells_of(TORCH + "# %%" + HELD_ELSEWHERE + STEPS)
    found = play(cells, watched=True).diagnosis
    assert found is not None and found.finding.facts["replaced"] == "net[2] = nn.Linear(4, 1)"
    made = "opt = torch.optim.SGD(net.parameters(), lr=0.1)\nopt = Stepper(opt)"
    assert made in "\n".join(edited(cells, found.rewrites[0])[2:])
    other = "class Other(torch.optim.SGD):\n    pass\nopt = Stepper(Other(net.parameters()))"
    cells = [c.replace("opt = Stepper(opt)", f"first = opt\n{other}") for c in cells]
    found = play(cells, watched=True).diagnosis
    assert found is not None and found.finding.facts["made"] == ""


PROJECTED = """
image, target = torch.rand(3, 3).requires_grad_(), torch.rand(3, 3)
opt = torch.optim.Adam([image], lr=0.1)
def valid(x):
    return x.detach().clamp(0, 1).requires_grad_()
# %%
for _ in range(4):
    opt.zero_grad()
    loss = (image - target).square().sum()
    loss.backward()
    opt.step()
    image = valid(image)
"""


def test_a_leaf_that_each_round_makes_anew_is_written_instead() -> None:
    cells = cells_of(TORCH + "# %%" + PROJECTED)
    found = play(cells, watched=True)
    assert found.diagnosis is not None, found.output
    finding, rewrites = found.diagnosis.finding, found.diagnosis.rewrites
    assert (finding.cause, finding.variant) == ("optimizer_misses_parameters", "rebound")
    assert finding.tensors[0].names[0] == "image"
    assert rewrites[0].fix == "written_back"
    repaired = edited(cells, rewrites[0])
    assert "        image.copy_(valid(image))" in repaired[-1].splitlines()
    assert not play(repaired, watched=True).diagnosis


#: Steps that found no gradient, beside leaves that got one.
MEANT = (
    # Adversarial examples, and weights that only some of the rounds train.
    """
net, other = nn.Linear(3, 3), nn.Linear(3, 1)
opts = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (net, other)]
# %%
for step in range(6):
    x = torch.rand(3, 3).requires_grad_()
    (net if step % 2 else other)(x).square().sum().backward()
    for opt in opts:
        opt.step()
        opt.zero_grad()
""",
    # Made anew together with its optimizer.
    """
# %%
for _ in range(4):
    image = torch.rand(3, 3).requires_grad_()
    opt = torch.optim.SGD([image], lr=0.1)
    for _ in range(2):
        opt.zero_grad()
        image.square().sum().backward()
        opt.step()
""",
)


@pytest.mark.parametrize("text", MEANT)
def test_no_leaf_has_taken_the_place_of_another(text: str) -> None:
    found = play(cells_of(TORCH + "# %%" + text), watched=True)
    assert found.diagnosis is None, found.output


LIBRARY = """class Trainer:
    def __init__(self, callbacks):
        self.callbacks = callbacks
    def fit(self, net, batches):
        self.optimizer = net.configure()
        for epoch in range(3):
            for callback in self.callbacks:
                callback.begin(net, epoch)
            for x in batches:
                self.optimizer.zero_grad()
                net(x).square().mean().backward()
                self.optimizer.step()
"""
CALLED_BACK = """
from fitlib import Trainer
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(3, 4).requires_grad_(False), nn.Linear(4, 1)
    def forward(self, x):
        return self.head(torch.tanh(self.body(x)))
    def configure(self):
        return torch.optim.SGD(@, lr=0.1)
class Thaw:
    def begin(self, net, epoch):
        if epoch == 1:
            net.body.requires_grad_(True)
net, trainer = Net(), Trainer([Thaw()])
# %%
trainer.fit(net, torch.rand(3, 4, 3))
"""


@pytest.mark.parametrize(
    "given",
    [
        "[p for p in self.parameters() if p.requires_grad]",
        "filter(lambda p: p.requires_grad, self.parameters())",
    ],
)
def test_an_optimizer_that_no_name_leads_to_gets_all(tmp_path: Path, given: str) -> None:
    with installed(tmp_path, "fitlib", LIBRARY):
        cells = cells_of(TORCH + "# %%" + CALLED_BACK.replace("@", given))
        found = play(cells, watched=True).diagnosis
        assert found is not None and found.finding.cause == "optimizer_misses_parameters"
        assert found.finding.facts["replaced"] == "net.body.requires_grad_(True)"
        repaired = edited(cells, found.rewrites[0])
        assert "return torch.optim.SGD(self.parameters(), lr=0.1)" in "\n".join(repaired)
        assert play(repaired, watched=True).diagnosis is None
