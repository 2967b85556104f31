"""The backward passes before the one that failed, and which nodes of its graph they passed."""

from __future__ import annotations

import ast

import torch

from ...model import Certainty
from ...nodes import GraphTraversal, start_of
from ..history import TraceEvent
from ..live.graph import GraphNode
from ..scene import Scene
from .binding import NodesOfName
from .statements import resolve

_SECONDS = 2.0


def backward_calls(scene: Scene) -> tuple[TraceEvent, ...]:
    """Every backward (and `autograd.grad`) the program called so far, oldest first.

    Not the failed one; and none that keeps the graph, where another one does not.
    """
    place = scene.place
    calls = [m for m in scene.history.steps if m.op == "backward" or _is_grad(m)]
    seen = scene.certainty is Certainty.OBSERVED  # the source is only followed up to the failure
    if seen and calls and place is not None and calls[-1].place.line == place.line:
        calls = calls[:-1]
    freeing = [m for m in calls if not _keeps_graph(scene, m)]
    return tuple(freeing or calls)


def _is_grad(moment: TraceEvent) -> bool:
    """`torch.autograd.grad(…)`, not `torch.func.grad(f)`."""
    return moment.op == "grad" and moment.operands[:1] not in (("torch.func",), ("func",))


def _keeps_graph(scene: Scene, moment: TraceEvent) -> bool:
    """Whether the call at a moment says `retain_graph=True` (or `create_graph=True`)."""
    statement = scene.program.statement_at(moment.place)
    calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call)] if statement else []
    named = [c for c in calls if getattr(c.func, "attr", "") in ("backward", "grad")]
    if len(named) != 1:
        return False
    given = {k.arg: k.value for k in named[0].keywords}
    said = given.get("retain_graph", given.get("create_graph"))
    return isinstance(said, ast.Constant) and said.value is True


def made_before(scene: Scene, calls: tuple[TraceEvent, ...]) -> list[GraphNode]:
    """The nodes made before the last backward, newest first, as far as makers are known."""
    if not calls:
        return []
    makers = [(n, scene.history.maker(n)) for n in scene.graph.inner]
    old = [n for n, maker in makers if maker is not None and maker.order < calls[-1].order]
    # Two losses may both be made before the first backward, which passed only its own graph.
    reached = _reached_by(scene, calls[-1]) or _below_values(scene, calls, old)
    return [n for n in old if id(n.node) in reached] or old


def _below_values(scene: Scene, calls: tuple[TraceEvent, ...], old: list[GraphNode]) -> set[int]:
    """The nodes below what went backward, where the failing graph uses that again.

    `loss.backward(); losses.append(loss)`: everything else was made before and not freed.
    """
    distinct = {m.place: m for m in calls}.values()
    names = ((m.operands[0], m.place) for m in distinct if m.operands)
    values = [NodesOfName(scene, name, at) for name, at in names if name.isidentifier()]
    starts = [n for n in old if any(n in of_name for of_name in values)]
    return {id(n.node) for n in scene.graph.below(starts)}


def _reached_by(scene: Scene, call: TraceEvent) -> set[int]:
    """The nodes below the tensor that went backward there, if it still lives under its name."""
    statement = scene.program.statement_at(call.place)
    frames = scene.incident.user_frames
    for node in ast.walk(statement) if statement is not None and frames else ():
        if not isinstance(node, ast.Attribute) or node.attr != "backward":
            continue
        root = resolve(node.value, frames[-1])
        if isinstance(root, torch.Tensor) and not any(root is r for r in scene.roots):
            made = scene.history.creation(root)
            if made is None or made.order < call.order:
                below = GraphTraversal([start_of(root)], seconds=_SECONDS)
                return {id(reached.node) for reached in below}
    return set()
