"""Batch norm inside a function transform."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.nn.modules.batchnorm import _BatchNorm

from autograd_explain.inspect.dataflow.reaching_definitions import head_of
from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.silent_evidence import assignments
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Event, Finding, Place, Role, TensorFact, What

PATTERNS = ("vmap-batch-norm",)

_MEAN = ".running_mean"
EXAMPLE = {"norm": "model[1]", "model": "model"}


@dataclass(frozen=True)
class Details:
    """The module that holds the batch norm, and the statement that made it."""

    model: str = ""
    made: Place | None = None


def diagnose(scene: Scene) -> Finding[Details] | None:
    norm = _norm(scene)
    name = "" if norm is None else _named(scene, norm)
    held = dict(scene.names.objects)
    model = head_of(name) if isinstance(held.get(head_of(name)), torch.nn.Module) else ""
    made = [place for place, _ in assignments(scene.program, model)][-1:] if model else []
    told = finding_from_message(
        scene,
        "vmap_batch_norm",
        EXAMPLE,
        facts={"norm": name, "model": model},
        variant="named" if name else "",
        more=tuple(Event(What.CREATED, place) for place in made),
        tensors=(TensorFact(Role.CULPRIT, (name + _MEAN, name)),) if name else (),
    )
    return told.with_details(Details(model, made[0] if made else None))


def _norm(scene: Scene) -> _BatchNorm | None:
    """The module whose forward pass failed."""
    found = (f.frame.f_locals.get("self") for f in reversed(scene.incident.frames))
    return next((m for m in found if isinstance(m, _BatchNorm)), None)


def _named(scene: Scene, norm: _BatchNorm) -> str:
    """What the program calls it: its statistics have the same name, and one more."""
    names = () if norm.running_mean is None else scene.names.of(norm.running_mean)
    return next((n.removesuffix(_MEAN) for n in names if n.endswith(_MEAN)), "")
