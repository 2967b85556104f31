"""A state that the loop around the failing line carries on with its graph."""

from __future__ import annotations

import ast

import torch

from autograd_explain.inspect.dataflow.safe_lookup import in_frame
from autograd_explain.inspect.facts.binding import carried_name
from autograd_explain.inspect.facts.failing_loops import FailingLoops, failing_loops
from autograd_explain.inspect.facts.held_by_library import held_by_library
from autograd_explain.inspect.facts.loop_carried import LoopCarried, StateKind, carried_by_loop
from autograd_explain.inspect.history import TraceEvent
from autograd_explain.inspect.scene import Scene
from autograd_explain.program import expression_of


def carried_across(scene: Scene, moment: TraceEvent) -> LoopCarried | None:
    """What a loop around the failing line carries past a moment with its graph, by the names that
    it has there."""
    graph, loops = scene.graph, failing_loops(scene)
    makers = {id(n): scene.history.maker(n) for n in graph.inner}
    old = [n for n in graph.nodes if (m := makers.get(id(n))) and m.order < moment.order]
    for node in graph.used_outside(old):
        maker = makers[id(node)]
        if maker is None or not loops.hold(maker):
            continue
        for reader in map(scene.history.maker, graph.parents(node)):
            name = carried_name(scene, maker, reader)
            if not name or _begins_anew(loops, name, reader):
                continue
            value = in_frame(expression_of(name), scene.incident.user_frames[-1].frame)
            if isinstance(value, (torch.Tensor, tuple)) and scene.place is not None:
                return LoopCarried(scene.place, (name,), StateKind.of(value))
    return (carried_by_loop(scene, old) or held_by_library(scene, old)) if loops else None


def _begins_anew(loops: FailingLoops, name: str, reader: TraceEvent | None) -> bool:
    """Whether each round of the loop around the failing line gives the name a first value before
    it is read there: `total = 0.0`."""
    loop = loops.innermost
    path = () if loop is None or reader is None else reader.path
    read = next((p.line for p in path if loop is not None and loop.is_of(p)), None)
    if loop is None or read is None:
        return False
    before = (s for s in loop.node.body if s.lineno + loop.offset < read)
    return any(
        any(ast.unparse(t) == name for t in s.targets)
        and not any(ast.unparse(n) == name for n in ast.walk(s.value))
        for s in before
        if isinstance(s, ast.Assign)
    )
