"""The statements that made what a copied object holds, where no gradient is wanted of it."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator, Sequence

import torch

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.live.graph import Graph
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Place
from autograd_explain.program import called_name

_RUN_BY_CALL = ("forward", "__call__", "__init__")
_GOES_BACK = ("backward", "grad")


def untrained_makers(scene: Scene, copied: ExprAt, tensor: torch.Tensor) -> tuple[Place, ...]:
    """One statement for each result that the copied object holds; () where one is not known, or
    where what they lead back to may be trained."""
    held = _results(scene, copied, tensor)
    if any(_may_be_trained(scene, leaf) for leaf in _leaves(held)):
        return ()
    found = [_outside_shared_code(scene, _path(scene, copied, result)) for result in held]
    known = [place for place in found if place is not None]
    return tuple(dict.fromkeys(known)) if len(known) == len(found) else ()


def _results(scene: Scene, copied: ExprAt, tensor: torch.Tensor) -> list[torch.Tensor]:
    parts = f"{copied.text}.", f"{copied.text}["
    named = (n.tensor for n in scene.names.tensors if n.name.startswith(parts))
    found = [tensor, *(t for t in named if t.grad_fn is not None)]
    return list({id(t): t for t in found}.values())


def _leaves(held: Sequence[torch.Tensor]) -> Iterator[torch.Tensor]:
    return (n.variable for n in Graph(tuple(held)).nodes if n.variable is not None)


def _may_be_trained(scene: Scene, leaf: torch.Tensor) -> bool:
    """Whether somebody may want a gradient of a leaf: one that is no parameter was given the flag
    for that; a parameter is trained by hand where the program goes back without an optimizer."""
    if not isinstance(leaf, torch.nn.Parameter) or leaf.grad is not None or _is_stepped(leaf):
        return True
    if any(True for _ in scene.names.optimizers()):
        return False
    calls = scene.index.nodes(ast.Call, naming=_GOES_BACK)
    return any(called_name(call) in _GOES_BACK for _, call in calls)


def _is_stepped(leaf: torch.Tensor) -> bool:
    """Whether a group of some optimizer holds it: that of a library's trainer has no name of the
    user's."""
    lists = [held for held in gc.get_referrers(leaf) if type(held) is list]
    groups = (group for held in lists for group in gc.get_referrers(held) if type(group) is dict)
    return any(any(group.get("params") is held for held in lists) for group in groups)


def _path(scene: Scene, copied: ExprAt, result: torch.Tensor) -> tuple[Place, ...]:
    """The user's lines that led to a result, outermost first; where its own are not known, those of
    the call that gave the object."""
    moment = scene.history.creation(result)
    if moment is not None:
        return moment.path
    spot: ExprAt | None = copied
    while spot is not None and not isinstance(spot.node, ast.Call):
        made = scene.slicer.makers(spot)
        spot = made[0] if len(made) == 1 else None
        if spot is not None and isinstance(spot.node, (ast.Attribute, ast.Subscript)):
            spot = spot.inside(spot.node.value)
    if spot is None:
        return ()
    lines = [scene.slicer.place(spot)]
    while (call := spot.scope.call) is not None:
        lines.insert(0, scene.slicer.place(call))
        spot = call
    return tuple(lines)


def _outside_shared_code(scene: Scene, path: tuple[Place, ...]) -> Place | None:
    """The innermost line that does not stand in a function which others call, too: these may want
    the gradient. None where a step of training would come under it."""
    for place in reversed(path):
        definition = scene.program.source_at(place)
        function = None if definition is None else definition.function_at(place)
        if function is None:
            return place
        if any(called_name(n) == "backward" for n in ast.walk(function)):
            return None
        calls = list(scene.index.calls_of(function.name))
        if function.name not in _RUN_BY_CALL and len(calls) == 1:
            return place
    return None
