"""A graph lost between the user's lines: in an installed package, or in what it was given."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from shadow_notebook import fresh_session, run

from autograd_explain.inspect.facts.no_graph import NoGraph, find
from autograd_explain.inspect.scene import Scene
from autograd_explain.match import match_message

LIBRARY = """\
import torch

def encode(model, x):
    return model(x).detach()

class Extractor(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(3, 2)

    @torch.no_grad()
    def forward(self, x):
        return self.net(x)

def penalty(critic, x):
    out = critic(x)
    return torch.autograd.grad(out.sum(), x, create_graph=True)[0].norm()
"""
BEGIN = "import torch\nfrom torch import nn\nfrom somelib import *\nnet = nn.Linear(3, 2)\n"


@pytest.fixture(autouse=True)
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "somelib.py").write_text(LIBRARY)
    monkeypatch.syspath_prepend(str(folder))
    importlib.invalidate_caches()
    yield
    sys.modules.pop("somelib", None)


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
