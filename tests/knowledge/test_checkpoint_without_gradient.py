"""A loss without graph because of reentrant checkpoints, and losses without graph for other
reasons that have a checkpoint on the way."""

from __future__ import annotations

from pathlib import Path

import pytest
from knowledge.played import edited, play
from knowledge.test_cases import run
from notebook import installed

from autograd_explain.model import What
from autograd_explain.render.topic_content import cells_of

START = """# %%
import warnings
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
warnings.simplefilter("ignore")
body, head = nn.Linear(3, 3), nn.Linear(3, 1)
x = torch.rand(4, 3)
"""
NET = """
class Net(nn.Module):
    def __init__(self, layers, save):
        super().__init__()
        self.layers, self.save = nn.ModuleList(layers), save
    def forward(self, x):
        for number, layer in enumerate(self.layers):
            if self.save:
                x = checkpoint(layer, x, use_reentrant=True)
            else:
                x = layer(x)
        return x
"""
#: What follows, the cause, the blamed lines, the lines of the first rewrite.
PROGRAMS: dict[str, tuple[str, str, list[str], list[str]]] = {
    "one after the other, the kind not said": (
        "# %%\nh = checkpoint(body, x, use_reentrant=True)\nloss = checkpoint(head, h).sum()\n"
        "loss.backward()\n",
        "checkpoint_without_gradient",
        ["h = checkpoint(body, x, use_reentrant=True)", "loss = checkpoint(head, h).sum()"],
        ["h = checkpoint(body, x, use_reentrant=False)",
         "loss = checkpoint(head, h, use_reentrant=False).sum()"],
    ),
    "a module imported under another name, a function around the layers": (
        "import torch.utils.checkpoint as saving\ndef encode(z):\n    return body(z).relu()\n# %%\n"
        "saving.checkpoint(encode, x, use_reentrant=True).mean().backward()\n",
        "checkpoint_without_gradient",
        ["saving.checkpoint(encode, x, use_reentrant=True).mean().backward()"],
        ["saving.checkpoint(encode, x, use_reentrant=False).mean().backward()"],
    ),
    "a checkpoint with its options given before": (
        "from functools import partial\nsave = partial(checkpoint, use_reentrant=True)\n# %%\n"
        "save(body, x).sum().backward()\n",
        "checkpoint_without_gradient",
        ["save(body, x).sum().backward()"],
        ["save(body, x, use_reentrant=False).sum().backward()"],
    ),
    "layers of a list in a loop": (
        NET + "# %%\nnet = Net([body, head], save=True)\nnet(x).sum().backward()\n",
        "checkpoint_without_gradient",
        ["x = checkpoint(layer, x, use_reentrant=True)"],
        ["                x = checkpoint(layer, x, use_reentrant=False)"],
    ),
    "all layers frozen": (
        NET + "net = Net([body, head], save=True)\nnet.requires_grad_(False)\n# %%\n"
        "net(x).sum().backward()\n",
        "graph_cut", [], [],
    ),
    "no checkpoint was taken": (
        NET + "net = Net([body, head], save=False)\nnet.requires_grad_(False)\n"
        "scale = torch.ones(1, requires_grad=True)\n# %%\nnet(x).sum().backward()\n",
        "graph_cut", [], [],
    ),
    "detached behind the checkpoint": (
        "# %%\nloss = checkpoint(body, x, use_reentrant=False).sum().detach()\nloss.backward()\n",
        "graph_cut", [], [],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_cause(name: str) -> None:
    text, cause, blamed, lines = PROGRAMS[name]
    cells = cells_of(START + text)
    found = play(cells)
    assert found.trouble == "" and found.diagnosis is not None, found.output
    finding = found.diagnosis.finding
    places = [e.place for e in finding.events if e.what is What.CAUSE]
    assert finding.cause == cause
    if lines:
        assert [p.source for p in places if p is not None] == blamed
        repaired = edited(cells, found.diagnosis.rewrites[0])
        assert set(lines) <= {row for cell in repaired for row in cell.splitlines()}
        run(repaired)


@pytest.mark.parametrize("frozen", [False, True])
def test_the_other_kind_gives_a_frozen_module_no_gradient(frozen: bool) -> None:
    text = f"body.requires_grad_({not frozen})\nwarnings.simplefilter('error')\n# %%\n"
    text += "checkpoint(body, x, use_reentrant=True)\n"
    found = play(cells_of(START + text))
    assert found.diagnosis is not None, found.output
    assert found.diagnosis.finding.cause == "checkpoint_without_gradient"
    assert bool(found.diagnosis.rewrites) is not frozen


#: A library's model that checkpoints its layers as its user asked, as transformers' do.
ENCODER = """
import functools
from torch import nn
from torch.utils.checkpoint import checkpoint
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers, self.save = nn.Sequential(nn.Linear(3, 3), nn.Tanh()), None
    def gradient_checkpointing_enable(self, gradient_checkpointing_kwargs=None):
        kwargs = gradient_checkpointing_kwargs or {"use_reentrant": True}
        self.save = functools.partial(checkpoint, **kwargs)
    def forward(self, x):
        return self.save(self.layers.__call__, x) if self.training else self.layers(x)
"""
ASKED = {
    "with the kind": (
        'net.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": True})',
        'net.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})',
    ),
    "without it": (
        "net.gradient_checkpointing_enable()",
        'net.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})',
    ),
    "by a name": (
        "kind = dict(use_reentrant=True)\nnet.gradient_checkpointing_enable(kind)",
        "kind = dict(use_reentrant=False)",
    ),
}


@pytest.mark.parametrize("name", ASKED)
def test_a_library_is_asked_for_the_other_kind(name: str, tmp_path: Path) -> None:
    asked, line = ASKED[name]
    text = f"from encoders import Encoder\nnet = Encoder()\n{asked}\n# %%\n"
    cells = cells_of(START + text + "h = net(x)\nloss = h.pow(2).sum()\nloss.backward()\n")
    with installed(tmp_path, "encoders", ENCODER):
        found = play(cells)
        assert found.diagnosis is not None, found.output
        finding = found.diagnosis.finding
        assert finding.cause == "checkpoint_without_gradient"
        assert finding.tensors[0].names[0] == "h"
        repaired = edited(cells, found.diagnosis.rewrites[0])
        assert line in repaired[0].splitlines()
        run(repaired)


def test_a_library_is_not_blamed_where_it_trains_more(tmp_path: Path) -> None:
    """Its result has a graph then: something else has cut the loss."""
    parts = (
        "class Parts(nn.Module):\n    def __init__(self, encoder):\n        super().__init__()\n"
    )
    parts += "        self.encoder, self.head = encoder, nn.Linear(3, 1)\n"
    parts += "    def forward(self, x):\n        return self.head(self.encoder(x)).detach()\n"
    text = "from encoders import Encoder, Parts\nnet = Encoder()\nmodel = Parts(net)\n"
    text += "net.gradient_checkpointing_enable()\n# %%\nloss = model(x).sum()\nloss.backward()\n"
    with installed(tmp_path, "encoders", ENCODER + parts):
        found = play(cells_of(START + text))
    assert found.diagnosis is not None, found.output
    assert found.diagnosis.finding.cause == "graph_cut"


SAVING = """\
from functools import partial
import torch
from torch.utils.checkpoint import checkpoint

_kind = {"use_reentrant": False}

def set_reentrant_kind(enable=True):
    _kind["use_reentrant"] = enable

class Encoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(3, 3).requires_grad_(False)
        self.second, self.save = torch.nn.Linear(3, 3), None

    def checkpointed(self):
        layers = [self.second]

        def run(x):
            for layer in layers:
                x = layer(x)
            return x

        self.save = lambda _, x: checkpoint(run, x, **_kind)

    def activation_checkpointing_enable(self, options=None):
        self.save = partial(checkpoint, **(options or {"use_reentrant": True}))

    def forward(self, x):
        h = self.first(x)
        return self.second(h) if self.save is None else self.save(self.second, h)
"""
TRAIN = "# %%\nfor _ in range(2):\n    out = encoder(x)\n    head(out).mean().backward()\n"
SWITCHES = {
    'encoder.activation_checkpointing_enable({"use_reentrant": True})': (
        'encoder.activation_checkpointing_enable({"use_reentrant": False})'
    ),
    'options = {"use_reentrant": True}\nencoder.activation_checkpointing_enable(options)': (
        'options = {"use_reentrant": False}'
    ),
    "somelib.set_reentrant_kind(True)\nencoder.checkpointed()": (
        "somelib.set_reentrant_kind(False)"
    ),
}


@pytest.mark.parametrize("switch", SWITCHES)
def test_the_warning_comes_of_a_library_that_was_asked(switch: str, tmp_path: Path) -> None:
    start = START.replace('"ignore"', '"default"') + "import somelib\nencoder = somelib.Encoder()\n"
    with installed(tmp_path, "somelib", SAVING):
        cells = cells_of(start + switch + "\n" + TRAIN)
        found = play(cells).diagnosis
        assert found is not None and found.finding.cause == "checkpoint_without_gradient"
        assert [
            e.place.source for e in found.finding.events if e.what is What.CAUSE and e.place
        ] == [switch.splitlines()[0]]
        inside = ("encoder.second", "encoder.second.weight", "encoder.second.bias")
        assert found.finding.tensors[0].names == ("encoder", *inside)
        (rewrite,) = found.rewrites
        assert SWITCHES[switch] in edited(cells, rewrite)[0]


def test_a_library_that_nobody_asked_is_not_ours_to_edit(tmp_path: Path) -> None:
    start = START.replace('"ignore"', '"default"') + "import somelib\nencoder = somelib.Encoder()\n"
    own = SAVING.replace(
        "self.second, self.save = torch.nn.Linear(3, 3), None",
        (
            "self.second = torch.nn.Linear(3, 3)\n"
            "        self.save = partial(checkpoint, use_reentrant=True)"
        ),
    )
    with installed(tmp_path, "somelib", own):
        found = play(cells_of(start + TRAIN)).diagnosis
        assert found is not None and found.finding.cause == "checkpoint_without_gradient"
        assert found.rewrites == ()
