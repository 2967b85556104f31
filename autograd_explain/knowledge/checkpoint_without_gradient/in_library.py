"""A model of an installed library that checkpoints its layers the reentrant way because the program
asked for it."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator

import torch

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.dataflow.safe_lookup import MISSING
from autograd_explain.inspect.facts.checkpointed import KIND, UnrecordedCheckpoint, is_reentrant
from autograd_explain.inspect.facts.expressions import computation
from autograd_explain.inspect.facts.no_graph import NoGraph
from autograd_explain.inspect.scene import Scene
from autograd_explain.isolation.type_checks import is_a, items, table_of

#: transformers' `PreTrainedModel.gradient_checkpointing_enable`, `activation_checkpointing_enable`.
_SWITCH = "checkpointing_enable"


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


def asked_for(scene: Scene) -> Iterator[ExprAt]:
    """The `True` of `use_reentrant`, in a dict or as an argument; else the calls that switch
    checkpoints on without saying which kind."""
    said = [
        scene.slicer.at(source, value)
        for source, node in scene.index.nodes(ast.AST)
        for value in _options(node)
    ]
    yield from (spot for spot in said if getattr(spot.node, "value", None) is True)
    if not said:
        for source, call in scene.index.nodes(ast.Call):
            name = getattr(call.func, "attr", "")
            if name.endswith(_SWITCH) and not call.keywords:
                yield scene.slicer.at(source, call)


def _options(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        yield from (v for k, v in pairs if isinstance(k, ast.Constant) and k.value == KIND)
    if isinstance(node, ast.Call):
        yield from (k.value for k in node.keywords if k.arg == KIND)
