"""Edits that would call a method of tensors on something else."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from autograd_explain.incident import Incident
from autograd_explain.inspect.dataflow import Slicer
from autograd_explain.model import Edit, Kind
from autograd_explain.no_tensor import asked_of_no_tensor
from autograd_explain.program import Program, Source
from autograd_explain.rewrite.engine.edits import apply

TEXT = """%matplotlib inline
def score(model, u):
    return model.user(u) @ model.items().t()
def half(values):
    return values * 0.5
y = score(net, x)
posterior = net.encode(x).latent
z = half(x)
parts = [x]
count = len(parts)
text = str(kept)
last = x
last = last.tolist()
"""
WRONG = {
    "a module that a function is given": ("return model.user", "return model.clone().user"),
    "a module": ("score(net, x)", "score(net.clone(), x)"),
    "a result with attributes": ("net.encode(x).latent", "net.encode(x).clone().latent"),
    "an object": ("str(kept)", "str(kept.detach())"),
}
RIGHT = {
    "a tensor": ("score(net, x)", "score(net, x.clone())"),
    "a tensor that a function is given": ("return values *", "return values.clone() *"),
    "what a method gives": ("model.items().t()", "model.items().clone().t()"),
    "a result whose shape is read": ("net.encode(x).latent", "net.encode(x).clone().shape"),
    "what was a tensor then": ("last = last.tolist()", "last = last.detach().tolist()"),
    "what may be a tensor then": ("len(parts)", "len(parts.detach())"),
    "an unknown name": ("score(net, x)", "score(net, other.clone())"),
}


class Net(nn.Module):
    """What the cell calls `net`."""


class Kept:
    """What the cell calls `kept`."""


@pytest.mark.parametrize("name", [*WRONG, *RIGHT])
def test_asked_of_no_tensor(name: str) -> None:
    old, new = {**WRONG, **RIGHT}[name]
    assert TEXT.count(old) == 1
    python = TEXT.replace("%matplotlib inline", "pass")
    x = torch.ones(2)
    names = {"net": Net(), "x": x, "z": x, "parts": [x], "kept": Kept(), "last": [1.0], "nn": nn}
    program = Program([Source(1, None, TEXT, python, "<cell 1>")], names)
    slicer = Slicer(program, Incident(Kind.ERROR, "", program, names))
    edit = Edit(1, None, TEXT, TEXT.replace(old, new))
    edited = apply(program, (edit,))
    assert edited is not None
    assert asked_of_no_tensor(slicer, edited.changed) is (name in WRONG)
