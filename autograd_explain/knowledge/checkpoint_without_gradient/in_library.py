"""A model of an installed library that checkpoints its layers the reentrant way because the program
asked for it."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from itertools import islice

import torch

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.dataflow.safe_lookup import MISSING
from autograd_explain.inspect.facts.checkpointed import (
    UnrecordedCheckpoint,
    asked_for,
    is_reentrant,
    modules_of,
)
from autograd_explain.inspect.facts.expressions import computation
from autograd_explain.inspect.facts.no_graph import NoGraph
from autograd_explain.inspect.facts.torch_call import local
from autograd_explain.inspect.scene import Scene
from autograd_explain.isolation.type_checks import is_a, items, table_of

_MOST = 4  #: parameters to name


def asked_of_library(scene: Scene, loss: NoGraph) -> tuple[UnrecordedCheckpoint, str] | None:
    """Where the program asks for reentrant checkpoints inside a model that computed a loss without
    graph and has parameters to train, and the call of the model; `read` is what its result is
    called."""
    if loss.root is None or loss.trace.cuts or loss.recording_off:
        return None
    for spot in computation(scene, loss.root):
        owner = None if spot.callable is None else scene.slicer.value(spot.callable)
        model = getattr(owner, "__self__", owner) if owner is not MISSING else None
        if is_a(model, torch.nn.Module) and _is_reentrant(model):
            asked = tuple(asked_for(scene))
            read = tuple(name.text for name in _names(scene, spot))
            found = UnrecordedCheckpoint(asked, read, True)
            return (found, spot.text) if asked else None
    return None


def _is_reentrant(model: torch.nn.Module) -> bool:
    """Whether what modules of it that are in training checkpoint is all that it trains: what stands
    before and behind them is frozen, so that neither their inputs nor the result require grad."""
    saving = [m for m in model.modules() if m.training and _keeps_checkpoint(m)]
    inside = {id(p) for m in saving for p in m.parameters()}
    trained = {id(p) for p in model.parameters() if p.requires_grad}
    return bool(trained) and trained <= inside


def _keeps_checkpoint(module: torch.nn.Module) -> bool:
    """Whether an attribute is torch's checkpoint with the options of the reentrant kind."""
    kept = (value for _, value in items(table_of(module)))
    return any(is_a(v, functools.partial) and is_reentrant(v) for v in kept)


def _names(scene: Scene, spot: ExprAt) -> Iterator[ExprAt]:
    statement = scene.slicer.statement(spot)
    for target in statement.targets if isinstance(statement, ast.Assign) else ():
        yield spot.inside(target)


def checkpointed(scene: Scene) -> tuple[str, ...]:
    """What the program calls what the checkpoint runs that torch warned of, and what is trained
    inside, as far as its arguments tell."""
    ran = local(scene, "checkpoint", "function", "torch/utils/checkpoint.py")
    inside = {id(m) for m in modules_of(ran)}
    held = [(name, m) for name, m in scene.names.held_modules if id(m) in inside]
    trained = (
        f"{name}.{parameter}"
        for name, module in held
        for parameter, value in module.named_parameters()
        if value.requires_grad
    )
    return tuple(dict.fromkeys((*(name for name, _ in held[:1]), *islice(trained, _MOST))))
