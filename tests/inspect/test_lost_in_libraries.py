"""A graph lost between the user's lines: in an installed package, or in what it was given."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from knowledge.played import edited, play
from notebook import installed, run_cells
from shadow_notebook import fresh_session, run

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.facts.expressions import method_call
from autograd_explain.inspect.facts.losing_call import losing_call
from autograd_explain.inspect.facts.no_graph import NoGraph, find
from autograd_explain.inspect.scene import Scene
from autograd_explain.match import match_message
from autograd_explain.model import Certainty, Role, What
from autograd_explain.render.topic_content import cells_of

LIBRARY = """\
from functools import wraps
import torch

def logged(function):
    @wraps(function)
    def log(*args, **kwargs):
        return function(*args, **kwargs)
    return log

def encode(model, x):
    return model(x).detach()

class Extractor(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(3, 2)

    @torch.no_grad()
    def forward(self, x):
        return self.net(x)

class Encoder(torch.nn.Linear):
    @torch.no_grad()
    def encode(self, x, scale=1.0):
        return self(x) * scale
    @logged
    @torch.no_grad()
    @logged
    def project(self, x):
        return self(x)

@torch.no_grad()
def grid(parts, width=2):
    rows = [torch.cat(list(row), -1) for row in parts.split(width)]
    return torch.cat(rows, -2)

class Pipeline:
    def __init__(self, net):
        self.net = net
    @torch.no_grad()
    def __call__(self, x):
        return self.net(x)

class Error:
    def __init__(self):
        self.total = torch.zeros(())
    def update(self, a, b):
        with torch.no_grad():
            self.total = self.total + (a - b).square().sum()
    def compute(self):
        return self.total.sqrt()
    def __call__(self, a, b):
        return (a - b).square().sum().sqrt()

def penalty(critic, x):
    out = critic(x)
    return torch.autograd.grad(out.sum(), x, create_graph=True)[0].norm()

class Curved(torch.optim.Optimizer):
    def __init__(self, params, asks=False):
        super().__init__(params, {"asks": asks})
    def step(self):
        params = self.param_groups[0]["params"]
        grads = [p.grad for p in params]
        if self.param_groups[0]["asks"] and grads[0].grad_fn is None:
            raise RuntimeError(
                "Gradient tensor 0 does not have grad_fn. When calling loss.backward(), "
                "make sure the option create_graph is set to True.")
        torch.autograd.grad(grads, params, [torch.ones_like(g) for g in grads])
"""
BEGIN = "import torch\nfrom torch import nn\nfrom somelib import *\nnet = nn.Linear(3, 2)\n"


@pytest.fixture(autouse=True)
def library(tmp_path: Path) -> Iterator[None]:
    with installed(tmp_path, "somelib", LIBRARY):
        yield


def lost(text: str) -> NoGraph:
    with fresh_session():
        incident = run([BEGIN, text])
    match = match_message(incident.message)
    assert match is not None
    found = find(Scene(incident, match))
    assert found is not None
    return found


def test_the_library_detaches() -> None:
    found = lost("z = encode(net, torch.ones(2, 3))\nz.sum().backward()")
    assert found.library is not None and found.library.inside is not None
    assert found.library.place.source == "z = encode(net, torch.ones(2, 3))"
    assert found.library.inside.source == "return model(x).detach()"


def test_the_library_computes_without_recording() -> None:
    found = lost("z = Extractor()(torch.ones(2, 3))\nz.sum().backward()")
    assert found.library is not None and found.library.inside is not None
    assert found.library.inside.source == "return self.net(x)"


def test_what_the_library_calls_is_the_users() -> None:
    found = lost(
        "@torch.no_grad()\ndef critic(x):\n    return net(x)\n"
        "penalty(critic, torch.ones(2, 3, requires_grad=True))"
    )
    assert found.library is None and found.recording_off
    assert found.off is not None and found.off.node.lineno == 1
    assert found.root_text == "out.sum()"


def test_numpy_in_what_the_library_calls() -> None:
    found = lost(
        "def critic(x):\n    return torch.tensor(net(x).detach().numpy())\n"
        "penalty(critic, torch.ones(2, 3, requires_grad=True))"
    )
    assert found.cut is not None and found.cut.spot.text == "net(x).detach().numpy()"
    assert [kind.value for kind, _ in found.cut.later] == ["numpy", "copy"]


def root_and_scene(text: str) -> tuple[ExprAt, Scene]:
    with fresh_session():
        incident = run([BEGIN, text])
    match = match_message(incident.message)
    assert match is not None
    scene = Scene(incident, match)
    root = method_call(scene, "backward")
    assert root is not None
    return root, scene


def test_the_text_tells_what_an_object_was_given() -> None:
    """Where the library itself cannot be followed."""
    root, scene = root_and_scene(
        "m = Error()\nm.update(net(torch.ones(2, 3)), 0.0)\nloss = m.compute() * 2\nloss.backward()"
    )
    found = losing_call(scene, root)
    assert found is not None and found.inside is not None
    assert found.place.source == "m.update(net(torch.ones(2, 3)), 0.0)"
    assert found.inside.source == "with torch.no_grad():"


def test_what_the_object_was_given_is_named() -> None:
    """The object itself, and what has no gradient, is not."""
    given = "m = Error()\nout, y = net(torch.ones(2, 3)), torch.ones(2, 2)\nm.update(out, y)\n"
    told = play((BEGIN, given + "loss = m.compute()\nloss.backward()")).diagnosis
    assert told is not None and told.finding.cause == "graph_cut"
    named = {n for t in told.finding.tensors if t.role is Role.CULPRIT for n in t.names}
    assert "out" in named and not named & {"y", "m", "net"}


def test_a_method_of_the_users_gives_its_argument_to_the_object() -> None:
    root, scene = root_and_scene(
        "class Objective:\n    def __init__(self):\n        self.m = Error()\n"
        "    def __call__(self, out, y):\n        self.m.update(out, y)\n"
        "        return self.m.compute()\nobjective = Objective()\n"
        "loss = 1 - objective(net(torch.ones(2, 3)), 0.0)\nloss.backward()"
    )
    found = losing_call(scene, root)
    assert found is not None and found.place.source == "self.m.update(out, y)"


def test_a_call_that_nothing_with_gradient_reaches_is_not_blamed() -> None:
    root, scene = root_and_scene(
        "m = Error()\nm.update(torch.ones(2), 0.0)\nloss = m.compute()\nloss.backward()"
    )
    assert losing_call(scene, root) is None


def test_every_object_that_the_loss_is_asked_of() -> None:
    """Not one that is asked for a print alone."""
    given = "near = Error()\nfar = Error()\nseen = Error()\n"
    for name, target in (("near", "0.0"), ("far", "1.0"), ("seen", "0.0")):
        given += f"{name}.update(net(torch.ones(2, 3)), {target})\n"
    asked = 'terms = {"near": near.compute(), "far": far.compute()}\nprint(seen.compute())\n'
    end = 'loss = terms["near"] + terms["far"]\nloss.backward()'
    cells = (BEGIN, given + asked + end)
    told = play(cells).diagnosis
    assert told is not None and told.finding.cause == "graph_cut"
    assert "near(net(torch.ones(2, 3)), 0.0)" in (code := edited(cells, told.rewrites[0])[1])
    assert "far(net(torch.ones(2, 3)), 1.0)" in code and "print(seen.compute())" in code


def test_what_a_decorator_wraps() -> None:
    cells = cells_of(
        "# %%\n" + BEGIN + "# %%\nencoder = Encoder(3, 2)\nx = torch.ones(2, 3)\n"
        "a = encoder.encode(x)\nb = encoder.encode(x, scale=2.0)\n(a * b).sum().backward()"
    )
    found = play(cells).diagnosis
    assert found is not None
    assert [r.fix for r in found.rewrites] == ["undecorated"]
    new = edited(cells, found.rewrites[0])
    assert "b = encoder.encode.__wrapped__(encoder, x, scale=2.0)" in new[-1]
    run_cells(new)


def test_what_is_wrapped_by_the_decorator_that_stands_behind_another() -> None:
    cells = cells_of(
        "# %%\n" + BEGIN + "# %%\nencoder = Encoder(3, 2)\n"
        "encoder.project(torch.ones(2, 3)).sum().backward()"
    )
    found = play(cells).diagnosis
    assert found is not None
    new = edited(cells, found.rewrites[0])
    assert "encoder.project.__wrapped__.__wrapped__(encoder, torch.ones(2, 3))" in new[-1]
    run_cells(new)


def test_what_a_decorator_wraps_of_a_module_that_is_called() -> None:
    cells = cells_of(
        "# %%\n" + BEGIN + "# %%\nclass Net(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.take = Extractor()\n"
        "    def forward(self, x):\n        return self.take(x).sum()\n"
        "# %%\nmodel = Net()\nmodel(torch.ones(2, 3)).backward()"
    )
    found = play(cells).diagnosis
    assert found is not None
    assert [r.fix for r in found.rewrites] == ["undecorated"]
    new = edited(cells, found.rewrites[0])
    assert "return self.take.forward.__wrapped__(self.take, x).sum()" in new[1]
    run_cells(new)


def test_what_a_decorator_wraps_of_an_object_that_is_called() -> None:
    cells = cells_of(
        "# %%\n" + BEGIN + "pipe = Pipeline(net)\nprompt = nn.Parameter(torch.ones(2, 3))\n"
        "# %%\nloss = pipe(prompt).sum()\nloss.backward()"
    )
    found = play(cells).diagnosis
    assert found is not None and [r.fix for r in found.rewrites] == ["undecorated"]
    new = edited(cells, found.rewrites[0])
    assert "loss = pipe.__call__.__wrapped__(pipe, prompt).sum()" in new[1]
    assert run_cells(new)["prompt"].grad is not None


@pytest.mark.parametrize("called", ["grid", "somelib.grid"])
def test_a_plain_function_that_runs_without_recording(called: str) -> None:
    """A frozen model behind it is not what the gradient was lost by."""
    cells = cells_of(
        "# %%\nimport somelib\n" + BEGIN + "for p in net.parameters():\n"
        "    p.requires_grad_(False)\ntiles = nn.Parameter(torch.rand(4, 3, 3))\n"
        f"# %%\nsheet = {called}(tiles.clamp(0, 1))\n"
        "loss = net(sheet[:, :3]).sum()\nloss.backward()"
    )
    found = play(cells).diagnosis
    assert found is not None and [r.fix for r in found.rewrites] == ["undecorated"]
    new = edited(cells, found.rewrites[0])
    assert f"sheet = {called}.__wrapped__(tiles.clamp(0, 1))" in new[1]
    assert run_cells(new)["tiles"].grad is not None


def test_a_recording_has_seen_it() -> None:
    cells = cells_of(
        "# %%\n" + BEGIN + "# %%\nm = Error()\nm.update(net(torch.ones(2, 3)), 0.0)\n"
        "loss = m.compute()\nloss.backward()"
    )
    found = play(cells, watched=True).diagnosis
    assert found is not None
    event = found.finding.event(What.CAUSE)
    assert event is not None and event.place is not None and event.inside is not None
    assert event.certainty is Certainty.OBSERVED
    assert event.place.source == "m.update(net(torch.ones(2, 3)), 0.0)"


@pytest.mark.parametrize("asks", [True, False])
@pytest.mark.parametrize("watched", [True, False])
def test_an_optimizer_differentiates_what_backward_left(asks: bool, watched: bool) -> None:
    """Whether it looks for the graph itself or torch finds that there is none."""
    cells = cells_of(
        f"# %%\n{BEGIN}opt = Curved(net.parameters(), asks={asks})\n# %%\n"
        "opt.zero_grad()\nloss = net(torch.ones(2, 3)).pow(3).sum()\n"
        "loss.backward()\nopt.step()"
    )
    found = play(cells, watched=watched).diagnosis
    assert found is not None and found.finding.variant == "left"
    assert found.finding.tensors[0].names[:2] == ("net.weight.grad", "net.bias.grad")
    new = edited(cells, found.rewrites[0])
    assert "loss.backward(create_graph=True)" in new[-1]
    run_cells(new)


def test_a_refusal_of_gradients_that_no_backward_left() -> None:
    cells = cells_of(
        f"# %%\n{BEGIN}opt = Curved(net.parameters(), asks=True)\n"
        "for p in net.parameters():\n    p.grad = torch.ones_like(p)\n# %%\nopt.step()"
    )
    found = play(cells).diagnosis
    assert found is not None and found.finding.cause == "graph_cut"
    assert found.rewrites == ()
