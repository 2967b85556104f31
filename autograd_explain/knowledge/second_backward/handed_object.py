"""An object of a library's that a call of the loop is handed, and keeps its results in: the next
call finds there what this one has computed."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from autograd_explain.arguments import given_by
from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.dataflow.safe_lookup import MISSING
from autograd_explain.inspect.facts.container_puts import live_object
from autograd_explain.inspect.facts.expressions import expression_at
from autograd_explain.inspect.facts.failing_loops import failing_loops
from autograd_explain.inspect.facts.loop_carried import handed_on
from autograd_explain.inspect.live.names import NamedTensor
from autograd_explain.inspect.scene import Scene
from autograd_explain.isolation.type_checks import is_a
from autograd_explain.model import Place
from autograd_explain.program import called_name, is_of_package

from .made_outside import called_around, is_in_graph


def handed_object(scene: Scene, call: Place | None, names: Sequence[str]) -> Place | None:
    """Where the call at the place is handed what holds the value of these names; None where that is
    the program's own, something that is trained, what the round itself makes, with its graph, or a
    memory that this call alone fills: a copy would forget what it is for."""
    spot = expression_at(scene, call)
    paths = [path for name in names for path in paths_of(name)]
    for argument in () if spot is None else _arguments(spot):
        path = next((p for p in paths if argument.text in (p, _as_own(p))), None)
        if spot is not None and path is not None:
            value = scene.slicer.value(argument)
            owner = live_object(scene, path) if value is MISSING else value
            own = _is_filled_by(scene, spot, argument, owner, path)
            other = own or _is_handed_on(scene, argument) or _is_made_by_round(scene, argument)
            return scene.place_at(argument) if _keeps(owner) and not other else None
    return None


def _is_filled_by(scene: Scene, call: ExprAt, argument: ExprAt, owner: Any, path: str) -> bool:
    """Whether the object began empty, and no other call is handed it."""
    made = list(scene.slicer.makers(argument))
    empty = [
        isinstance(m.node, ast.Call)
        and called_name(m.node) == type(owner).__name__
        and not any(_may_hold(scene.slicer.value(a)) for a in _arguments(m))
        for m in made
    ]
    if not empty or not all(empty):
        return False
    calls = (scene.slicer.at(source, node) for source, node in scene.index.nodes(ast.Call))
    ran = called_name(call.node)  # what the call runs may hand the object on
    others = (c for c in calls if getattr(c.scope.body, "name", "") != ran)
    given = ((c, a) for c in others if c.node is not call.node for a in _arguments(c))
    return not any(
        _is_same(scene, a, owner, path)
        or any(c.scope.body is m.scope.body and _is_made_at(scene, a, m) for m in made)
        for c, a in given
    )


def _is_made_at(scene: Scene, argument: ExprAt, maker: ExprAt) -> bool:
    return any(made.node is maker.node for made in scene.slicer.makers(argument))


def _may_hold(value: Any) -> bool:
    """Whether an object that is given this may begin with it: a configuration holds no values."""
    return value is MISSING or is_a(value, (torch.Tensor, list, tuple, dict))


def kept_in_handed(scene: Scene) -> Iterator[tuple[NamedTensor, str, ExprAt]]:
    """The tensors of the failing graph in such objects that are made once for all rounds, each with
    the object's name and the call that is handed it: in a function that failed, or in one that a
    loop calls."""
    held = [n for n in scene.names.tensors if is_in_graph(scene, n.tensor)]
    calls = list(_calls_of_rounds(scene)) if held else []
    for named in held:
        owners = [(path, live_object(scene, path)) for path in paths_of(named.name)]
        for path, owner in ((p, o) for p, o in owners if _keeps(o)):
            for call in calls:
                if any(_is(scene, a, owner, path) for a in _arguments(call)):
                    yield named, path, call


def _calls_of_rounds(scene: Scene) -> Iterator[ExprAt]:
    """Those of the functions that failed, innermost first, then those of functions that the loops
    around the failure call."""
    failed = [scope.body for _, scope in reversed(scene.slicer.frame_chain)]
    bodies = [id(body) for body in (*failed, *called_around(scene))]
    calls = [scene.slicer.at(source, node) for source, node in scene.index.nodes(ast.Call)]
    near = [c for c in calls if id(c.scope.body) in bodies]
    return iter(sorted(near, key=lambda c: bodies.index(id(c.scope.body))))


def _arguments(call: ExprAt) -> list[ExprAt]:
    given = given_by(call.node) if isinstance(call.node, ast.Call) else []
    return [call.inside(node) for _, node in given]


def paths_of(name: str) -> Iterator[str]:
    """`self.cache.layers[0]`, `self.cache.layers`, `self.cache` and `self` of a part of it."""
    while (cut := max(name.rfind("."), name.rfind("["))) > 0:
        name = name[:cut]
        yield name


def _keeps(value: Any) -> bool:
    kind = type(value)
    trained = issubclass(kind, (torch.nn.Module, torch.optim.Optimizer))
    return value is not MISSING and not trained and is_of_package(kind)


def _as_own(path: str) -> str:
    """`self.cache` of `trainer.cache`."""
    return f"self.{path.rpartition('.')[2]}"


def _is(scene: Scene, argument: ExprAt, owner: Any, path: str) -> bool:
    """Whether a call is handed this object, by a name of the function around it or as an attribute
    of this name, and no round makes it."""
    return _is_same(scene, argument, owner, path) and not _is_made_by_round(scene, argument)


def _is_same(scene: Scene, argument: ExprAt, owner: Any, path: str) -> bool:
    value = scene.slicer.value(argument)
    unknown = value is MISSING and argument.text == _as_own(path)
    return value is owner or unknown


def _is_made_by_round(scene: Scene, argument: ExprAt) -> bool:
    """Whether what makes the object runs as often as the call, or is not known."""
    if _is_handed_on(scene, argument):
        return False
    loops, at = failing_loops(scene), scene.slicer.place(argument)
    inner = loops.around(at)
    makers = (m for maker in scene.slicer.makers(argument) for m in _calls_to(maker))
    made = [scene.slicer.place(maker) for maker in makers]
    return any(
        any(loop.holds(place) for loop in (loops.loops if inner is None else (inner,)))
        or (place.function_id == at.function_id and inner is None)
        for place in made
    )


def _calls_to(spot: ExprAt | None) -> Iterator[ExprAt]:
    """A place, and the calls that led to it, innermost first."""
    while spot is not None:
        yield spot
        spot = spot.scope.call


def _is_handed_on(scene: Scene, argument: ExprAt) -> bool:
    """Whether the loop around a call gives the name that it reads its value for the next round."""
    inner = failing_loops(scene).around(scene.slicer.place(argument))
    return inner is not None and any(argument.text == name for name, *_ in handed_on(inner.node))
