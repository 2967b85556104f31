"""What objects of installed packages hold with its graph for the next round."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import torch

from ...nodes import GraphTraversal
from ...program import expression_of, is_of_package
from ..dataflow.reaching_definitions import head_of
from ..dataflow.safe_lookup import MISSING, in_frame
from ..live.graph import GraphNode
from ..live.names import without_item
from ..scene import Scene
from .loop_carried import LoopCarried, StateKind

_SECONDS = 0.5
_MOST = 12


def held_by_library(scene: Scene, old: Collection[GraphNode]) -> LoopCarried | None:
    """The attributes of such objects through which the failing graph goes back to `old`, by names
    that the failing line can use: the lists that keep what several calls have made, else the
    tensors that lead there.  None where ending the graph at them would leave nothing to train, or
    would not lead past what was freed."""
    held = list(_held(scene))
    lists = tuple(n for n, v in held if isinstance(v, list) and _collects(scene, v, old))
    names = lists or _leading(scene, [(n, v) for n, v in held if not isinstance(v, list)], old)
    kind = StateKind.LIST if lists else StateKind.TENSOR
    return LoopCarried(scene.place, names, kind) if names and scene.place is not None else None


def _collects(scene: Scene, values: list[torch.Tensor | None], old: Collection[GraphNode]) -> bool:
    """Whether a list keeps what several calls made, of which the failing graph holds some: ending
    the graph at the older ones, where these still have one, leaves something to train.  Of what one
    call made, that is where it is `old`."""
    made = [scene.graph.find(v.grad_fn) for v in values if v is not None and v.grad_fn is not None]
    nodes = {n.sequence: id(n.node) for n in made if n is not None}
    older = {nodes[sequence] for sequence in sorted(nodes)[:-1]}
    if not older and len(values) > 1:
        return bool(nodes)
    older = older or {id(n.node) for n in old} & {*nodes.values()}
    return scene.graph.ends_at(lambda n: id(n.node) in older)


def _leading(
    scene: Scene, held: list[tuple[str, torch.Tensor]], old: Collection[GraphNode]
) -> tuple[str, ...]:
    """The tensors that lead to the old nodes, where the failing graph reaches these through what
    the tensors were computed from, and leaves elsewhere."""
    nodes = {id(n.node) for n in old if n.variable is None}
    below = {n: _below(v) & nodes for n, v in held}
    ends = {i for found in below.values() for i in found}
    ended = scene.graph.ends_at(lambda n: id(n.node) in ends, nodes - ends)
    return tuple(n for n, found in below.items() if found) if ended else ()


def _held(scene: Scene) -> Iterator[tuple[str, Any]]:
    """The attributes that hold a computed tensor, or a list of such, each by its first name."""
    frame = scene.incident.user_frames[-1].frame
    seen: set[tuple[int, str]] = set()
    # A name of the failing function's own says what a global one would say of one object only.
    for named in sorted(scene.names.tensors, key=lambda n: head_of(n.name) not in frame.f_locals):
        name = without_item(named.name)
        path, _, attribute = name.rpartition(".")
        owner = in_frame(expression_of(path), frame) if path and named.tensor.grad_fn else MISSING
        if owner is MISSING or not is_of_package(type(owner)) or len(seen) == _MOST:
            continue
        value = in_frame(expression_of(name), frame)
        members = value if type(value) is list else [value]
        if (id(owner), attribute) not in seen and all(map(_is_tensor, members)):
            seen.add((id(owner), attribute))
            yield name, value


def _is_tensor(value: Any) -> bool:
    return value is None or isinstance(value, torch.Tensor)


def _below(value: torch.Tensor) -> set[int]:
    starts = [] if value.grad_fn is None else [value.grad_fn]
    return {id(reached.node) for reached in GraphTraversal(starts, seconds=_SECONDS)}
