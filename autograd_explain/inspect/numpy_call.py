"""The tensor that NumPy asked for, and how it got there: by itself or inside a container."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from .origin import inside, method_call, outer_names, surfaced, tracer_of, walker_of
from .scene import Scene
from .source_walk import Each, Spot
from .source_walk.bindings import key_of

_DIRECT = ("numpy", "__array__", "tolist")


@dataclass(frozen=True, eq=False)
class NumpyCall:
    """`shown` is the user's expression for the tensor, or for the container that holds it;
    `stored` are the expressions that were put into that container."""

    tensor: torch.Tensor | None
    shown: Spot
    direct: bool
    container: Any = None
    stored: tuple[Spot, ...] = ()
    names: tuple[str, ...] = ()

    @property
    def numbers(self) -> bool:
        """Whether everything in the container is a single number."""
        values = self.container.values() if isinstance(self.container, dict) else self.container
        tensors = [v for v in values or () if isinstance(v, torch.Tensor)]
        return bool(tensors) and all(t.dim() == 0 for t in tensors)


def find(scene: Scene) -> NumpyCall | None:
    """What was to become an array at the failing line."""
    tensor = _asked(scene)
    for name in _DIRECT:
        shown = method_call(scene, name)
        if shown is not None:
            value = walker_of(scene).value(shown)
            found = tensor if tensor is not None else value
            live = found if isinstance(found, torch.Tensor) else None
            return NumpyCall(live, shown, True, names=tuple(_names(scene, shown)))
    if tensor is None:
        return None
    for shown, value in _expressions(scene):
        if value is tensor:
            return NumpyCall(tensor, shown, False, names=tuple(_names(scene, shown)))
    for shown, value in _expressions(scene):
        if _holds(value, tensor):
            stored = tuple(_stored(scene, shown))
            names = [*_names(scene, shown), *(s.text for s in stored)]
            return NumpyCall(tensor, shown, False, value, stored, tuple(dict.fromkeys(names)))
    shown = _carrying_argument(scene)
    return (
        None
        if shown is None
        else NumpyCall(tensor, shown, False, names=tuple(_names(scene, shown)))
    )


def _asked(scene: Scene) -> torch.Tensor | None:
    """`self` of `Tensor.__array__` (torch/_tensor.py), which NumPy calls."""
    for live in reversed(scene.incident.frames):
        if live.function in ("__array__", "numpy") and "torch" in live.filename:
            value = live.frame.f_locals.get("self")
            return value if isinstance(value, torch.Tensor) else None
    return None


def _expressions(scene: Scene) -> Iterator[tuple[Spot, Any]]:
    """The expressions of the failing statement that name something live, outermost first."""
    walker = walker_of(scene)
    at = surfaced(scene)
    statement = None if at is None else walker.statement(at)
    if at is None or statement is None:
        return
    for root in (at.node, statement):
        for node in ast.walk(root):
            if isinstance(node, ast.expr) and key_of(node) is not None:
                spot = inside(at, node)
                yield spot, walker.value(spot)


def _carrying_argument(scene: Scene) -> Spot | None:
    """The one argument (or the value put into an array) that gradient passes through."""
    at = surfaced(scene)
    statement = None if at is None else walker_of(scene).statement(at)
    if at is None:
        return None
    given: list[ast.expr] = []
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
        given = [statement.value]
    elif isinstance(at.node, ast.Call):
        given = [*at.node.args, *(k.value for k in at.node.keywords)]
    spots = [inside(at, n) for n in given]
    carrying = [s for s in spots if tracer_of(scene).trace(s).carries]
    return carrying[0] if len(carrying) == 1 else None


def _holds(value: Any, tensor: torch.Tensor) -> bool:
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, (list, tuple, deque)):
        return False
    return any(v is tensor or (isinstance(v, (list, tuple)) and _holds(v, tensor)) for v in value)


def _stored(scene: Scene, shown: Spot) -> Iterator[Spot]:
    """What statements put into the container, and the elements it was built with."""
    walker = walker_of(scene)
    yield from walker.insertions(shown, Each.ITEM)
    for maker in walker.makers(shown):
        if isinstance(maker.node, ast.ListComp):
            yield inside(maker, maker.node.elt)
        elif isinstance(maker.node, (ast.List, ast.Tuple)):
            yield from (inside(maker, n) for n in maker.node.elts)


def _names(scene: Scene, shown: Spot) -> Iterator[str]:
    yield from outer_names(scene, shown)
    yield shown.text
    for node in ast.walk(shown.node):
        value = walker_of(scene).value(inside(shown, node)) if isinstance(node, ast.Name) else None
        if isinstance(node, ast.Name) and isinstance(value, torch.Tensor) and value.requires_grad:
            yield node.id


def used_with_gradient(scene: Scene, found: NumpyCall) -> bool:
    """Whether the program also computes with what is in the container, so that it must keep its
    graph: `torch.stack(self.losses)`, `sum(losses).backward()`."""
    attr = found.shown.node.attr if isinstance(found.shown.node, ast.Attribute) else ""
    text = found.shown.text
    for source in walker_of(scene).sources():
        for node in ast.walk(source.tree):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            taken = [a for a in node.args if _same_key(a, text, attr)]
            if taken and (called in ("sum", "reduce") or called.startswith(("torch.", "th."))):
                return True
    return False


def _same_key(node: ast.expr, text: str, attr: str) -> bool:
    if attr:
        return isinstance(node, ast.Attribute) and node.attr == attr
    return ast.unparse(node) == text
