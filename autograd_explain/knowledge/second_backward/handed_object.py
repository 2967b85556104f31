"""An object of a library's that a call of the loop is handed, and keeps its results in: the next
call finds there what this one has computed."""

from __future__ import annotations

import ast
from collections.abc import Sequence

import torch

from autograd_explain.inspect.facts.expressions import expression_at
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Place
from autograd_explain.program import is_of_package


def handed_object(scene: Scene, call: Place | None, names: Sequence[str]) -> Place | None:
    """Where the call at the place is handed what holds the value of these names; None where that is
    the program's own, or something that is trained."""
    spot = expression_at(scene, call)
    if spot is None or not isinstance(spot.node, ast.Call):
        return None
    for given in (*spot.node.args, *(k.value for k in spot.node.keywords)):
        argument = spot.inside(given)
        if any(name.startswith((f"{argument.text}.", f"{argument.text}[")) for name in names):
            kind = type(scene.slicer.value(argument))
            trained = issubclass(kind, (torch.nn.Module, torch.optim.Optimizer))
            return None if trained or not is_of_package(kind) else scene.place_at(argument)
    return None
