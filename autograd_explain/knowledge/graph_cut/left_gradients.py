"""Gradients that a backward left in `.grad` without their graph, and that other code then
differentiates: an optimizer of second order, a penalty of the gradients, a library's too."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from autograd_explain.incident import LiveFrame
from autograd_explain.inspect.dataflow import Cut, CutKind, ExprAt, GradientTrace
from autograd_explain.inspect.facts.called_back import library_frames
from autograd_explain.inspect.facts.expressions import computation
from autograd_explain.inspect.facts.no_graph import NoGraph
from autograd_explain.inspect.facts.torch_call import differentiated
from autograd_explain.inspect.history import TraceEvent
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Role, TensorFact
from autograd_explain.nodes import GraphTraversal
from autograd_explain.program import called_name

#: What optimizers of second order say that look for the graph themselves.
REFUSED = "gradient-without-graph-refused"
_NAMES = 5
_SECONDS = 0.5


@dataclass(frozen=True, eq=False)
class LeftGradients:
    """`backwards` are the calls that left them, oldest first, each line once."""

    backwards: tuple[TraceEvent, ...]
    gradient: TensorFact


def left_gradients(scene: Scene, found: NoGraph) -> LeftGradients | None:
    """Told where what a backward left in `.grad` is differentiated, by whatever code."""
    leaves = _read_leaves(scene, found)
    backwards = _backwards(scene, leaves) if leaves else ()
    if not backwards:
        return None
    names = [f"{name}.grad" for tensor in leaves for name in scene.names.of(tensor)[:1]]
    gradient = leaves[0].grad
    assert gradient is not None
    return LeftGradients(backwards, scene.fact(Role.CULPRIT, gradient, *names[:_NAMES]))


def _read_leaves(scene: Scene, found: NoGraph) -> list[torch.Tensor]:
    """The leaves whose `.grad` was differentiated: by identity, else as the text reads it."""
    asked = [t for t in differentiated(scene) if isinstance(t, torch.Tensor)]
    known = _without_graph(asked or [n.tensor for n in scene.names.tensors])
    gradients = {id(t.grad): t for t in known}
    roots = [gradients[id(r)] for r in scene.roots if id(r) in gradients]
    if roots:
        return roots
    if found.root is not None and _reads_gradient(scene, found.root, found.trace):
        return known
    refused = scene.match.pattern == REFUSED
    frames = library_frames(scene) or (scene.incident.user_frames[-1:] if refused else ())
    held = (v for frame in frames for v in _tensors_of(frame))
    return [gradients[id(v)] for v in held if id(v) in gradients]


def _reads_gradient(scene: Scene, root: ExprAt, trace: GradientTrace) -> bool:
    """Whether it was computed from `.grad`, and nothing else cuts the graph on the way; where that
    is not followed, whether the function that differentiates reads it for this."""
    if trace.cuts and not trace.carries:
        return all(_is_gradient(c) for c in trace.cuts)
    spots = (*scene.slicer.makers(root), *computation(scene, root))
    nodes = [n for s in spots if s.scope.body is root.scope.body for n in ast.walk(s.node)]
    called = {id(n.func) for n in nodes if isinstance(n, ast.Call)}  # `torch.autograd.grad`
    read = (n for n in nodes if isinstance(n, ast.Attribute) and id(n) not in called)
    return any(n.attr == "grad" for n in read)


def _is_gradient(cut: Cut) -> bool:
    return cut.kind is CutKind.GRADIENT and isinstance(cut.spot.node, ast.Attribute)


def _without_graph(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    """The leaves among them that have a gradient which has no graph."""
    leaves = (t for t in tensors if t.is_leaf and t.requires_grad)
    return [t for t in leaves if t.grad is not None and not t.grad.requires_grad]


def _tensors_of(frame: LiveFrame) -> Iterator[torch.Tensor]:
    for value in list(frame.frame.f_locals.values()):
        for one in value if type(value) in (list, tuple) else (value,):
            if isinstance(one, torch.Tensor):
                yield one


def _backwards(scene: Scene, leaves: list[torch.Tensor]) -> tuple[TraceEvent, ...]:
    """The backwards since gradients were last cleared or used, without those of other graphs."""
    found: list[TraceEvent] = []
    for moment in scene.history.steps:
        if moment.op in ("zero_grad", "step"):
            found = []
        elif moment.op == "backward" and _is_backward(scene, moment):
            found.append(moment)
    reaching = [m for m in found if _reaches(scene, m, leaves)]
    return tuple({m.place: m for m in reaching}.values())


def _is_backward(scene: Scene, moment: TraceEvent) -> bool:
    """Whether the user wrote it there, by whatever object it is called, and it did not fail."""
    if scene.place is not None and scene.place.line_id == moment.place.line_id:
        return False
    statement = scene.program.statement_at(moment.place)
    nodes = [] if statement is None else list(ast.walk(statement))
    return any(called_name(n).endswith("backward") for n in nodes)


def _reaches(scene: Scene, moment: TraceEvent, leaves: list[torch.Tensor]) -> bool:
    """Whether its root leads to one of the leaves, as far as that still lives under its name."""
    wanted = {id(t) for t in leaves}
    name = next(iter(moment.operands), "")
    roots = [n.tensor for n in scene.names.tensors if n.name == name and n.tensor.grad_fn]
    walks = (GraphTraversal([root.grad_fn], seconds=_SECONDS) for root in roots)
    return not roots or any(id(leaf) in wanted for walk in walks for leaf in walk.leaves())
