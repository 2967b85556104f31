"""Why a loss has no graph: the expression that cut it, or what kept it from being recorded."""

from __future__ import annotations

import ast
import linecache
import os
import sys
from dataclasses import dataclass, replace

import torch

from ...incident import LiveFrame
from ...model import Role, TensorFact
from ...program import Source, is_installed
from ..dataflow import Cut, CutKind, ExprAt, GradientTrace, Off, best_cut, switches
from ..dataflow.failing_expression import expression_at
from ..history import TraceEvent
from ..scene import Scene
from .expressions import method_call
from .other_object import is_value


@dataclass(frozen=True, eq=False)
class NoGraph:
    """`root` is the expression backward was called on, `fact` what is known of its value.

    One of `cut`, `off` (what turned recording off) and `frozen` (modules all of whose parameters
    have requires_grad=False) tells why; all are empty where the source does not show it.
    `still_off` says that recording was off when the failure was looked at, `library` where a
    library that the user called lost the graph.
    """

    root: ExprAt | None
    fact: TensorFact
    trace: GradientTrace
    cut: Cut | None = None
    off: Off | None = None
    frozen: tuple[ExprAt, ...] = ()
    still_off: bool = False
    library: TraceEvent | None = None

    @property
    def root_text(self) -> str:
        names = self.fact.names[:1] if self.root is None else (self.root.text,)
        return names[0] if names else ""

    @property
    def recording_off(self) -> bool:
        """Whether the cause is the gradient mode rather than an operation."""
        off = self.cut is not None and self.cut.kind is CutKind.NO_GRAD
        return self.still_off or self.off is not None or off


def find(scene: Scene) -> NoGraph | None:
    """What is known of a backward that found no graph."""
    tensor = _tensor(scene)
    if (tensor is not None and tensor.requires_grad) or _is_other(scene):
        return None
    root = _root(scene)
    fact = _fact(scene, tensor, root)
    if root is None:
        return _from_run(scene, NoGraph(None, fact, GradientTrace(False)))
    trace = scene.gradient_tracer.trace(root)
    if not torch.is_grad_enabled():
        return NoGraph(root, fact, trace, None, _switch(scene), still_off=True)
    cut = None if trace.carries else _whole(scene, best_cut(trace.cuts))
    found = NoGraph(root, fact, trace, cut, None if cut is None else cut.off, trace.frozen)
    return found if cut is not None or trace.frozen else _from_run(scene, found)


def _from_run(scene: Scene, found: NoGraph) -> NoGraph:
    """What the text alone does not show: a library between the user's lines lost the graph, or
    what the user gave it has none."""
    lost = scene.inferred.lost if _calls_library(scene) else None
    if lost is None:
        return found
    spot = _expression(scene, lost.own)
    if spot is not None:
        trace = scene.gradient_tracer.trace(spot)
        cut = _whole(scene, best_cut(trace.cuts))
        if cut is not None:
            return replace(found, trace=trace, cut=cut, off=cut.off)
    return found if lost.end.inside is None else replace(found, library=lost.end)


def _calls_library(scene: Scene) -> bool:
    """Whether an installed package that works on tensors is loaded by the program."""
    sources = (*scene.index.cells, *scene.index.files)
    names = {full.partition(".")[0] for source in sources for _, full in source.imports}
    return any(_is_installed(name) for name in names)


def _is_installed(name: str) -> bool:
    path = vars(sys.modules.get(name, sys)).get("__file__")
    return name not in _OWN and isinstance(path, str) and is_installed(path)


_OWN = ("torch", "numpy")


def _expression(scene: Scene, moment: TraceEvent | None) -> ExprAt | None:
    """The expression that a moment is about."""
    place = None if moment is None else moment.place
    source = None if place is None else scene.program.source_at(place)
    if place is None or source is None or place.span is None:
        return None
    nodes = source.nodes_from.get(place.span.line - source.offset, ())
    return next(
        (
            scene.slicer.at(source, node)
            for node in nodes
            if isinstance(node, ast.expr) and source.span(node) == place.span
        ),
        None,
    )


def _asking(scene: Scene) -> LiveFrame | None:
    """The frame of a library that asked for the gradient, the user having called the library."""
    frames = scene.incident.frames
    own = {id(f) for f in scene.incident.user_frames}
    last = max((i for i, f in enumerate(frames) if id(f) in own), default=len(frames))
    found = (f for f in frames[last + 1 :] if not f.filename.startswith(_TORCH))
    return next((f for f in reversed([*found]) if is_installed(f.filename)), None)


def _asked_for(frame: LiveFrame | None) -> str:
    """What a library calls the value whose gradient it asked for, as the traceback shows it."""
    if frame is None:
        return ""
    text = "".join(linecache.getlines(frame.filename))
    source = Source(None, frame.filename, text, text, frame.filename)
    call = expression_at(source, frame)
    if not isinstance(call, ast.Call):
        return ""
    method = isinstance(call.func, ast.Attribute) and call.func.attr == "backward"
    receiver = call.func.value if method and isinstance(call.func, ast.Attribute) else None
    asked = receiver or next(iter(call.args), None)
    return "" if asked is None else " ".join((source.segment(asked) or "").split())


_TORCH = os.path.join(os.path.dirname(torch.__file__), "")


def _fact(scene: Scene, tensor: torch.Tensor | None, root: ExprAt | None) -> TensorFact:
    name = _asked_for(_asking(scene)) if root is None else root.text
    if tensor is None:
        return TensorFact(Role.ROOT, (name,) if name else (), requires_grad=False)
    return scene.fact(Role.ROOT, tensor, name)


def _is_other(scene: Scene) -> bool:
    """Whether backward was called on what never was a tensor: a list, a function, a criterion."""
    found = getattr(scene.incident.exception, "obj", None)
    attribute = scene.match.pattern == "backward-on-non-tensor"
    return attribute and not is_value(found) and not isinstance(found, torch.Tensor)


def _tensor(scene: Scene) -> torch.Tensor | None:
    index = _index(scene)
    return scene.roots[index] if index < len(scene.roots) else None


def _index(scene: Scene) -> int:
    """Which of the tensors backward was given has no graph: "element 1 of tensors …"."""
    element = scene.match.captures.get("index", "0")
    return int(element) if element.isdigit() else 0


def _root(scene: Scene) -> ExprAt | None:
    """`loss` of `loss.backward()`, `autograd.backward(loss)`, `autograd.grad(loss, x)`."""
    if _asking(scene) is not None:
        return None
    receiver = method_call(scene, "backward")
    if receiver is not None and not _is_library(scene, receiver):
        scaled = _unscaled(receiver)
        return scaled or receiver
    call = scene.surfaced
    if call is None or not isinstance(call.node, ast.Call):
        return None
    given = [*call.node.args, *(k.value for k in call.node.keywords if k.arg in _ROOTS)]
    if not given:
        return None
    first = given[0]
    if isinstance(first, (ast.List, ast.Tuple)) and _index(scene) < len(first.elts):
        first = first.elts[_index(scene)]
    return call.inside(first)


_ENDS = {
    "numpy": CutKind.NUMPY,
    "item": CutKind.NUMBER,
    "tolist": CutKind.NUMBER,
    "cpu": None,
    "clone": None,
}


def _whole(scene: Scene, cut: Cut | None) -> Cut | None:
    """`x.detach().cpu().numpy()` cuts as one expression, and towards NumPy."""
    if cut is None or cut.kind not in (CutKind.DETACH, CutKind.NUMPY):
        return cut
    index = scene.slicer.index(cut.spot.scope.source)
    node: ast.AST = cut.spot.node
    while True:
        attribute = index.parents.get(node)
        call = index.parents.get(attribute) if attribute is not None else None
        if not (isinstance(attribute, ast.Attribute) and isinstance(call, ast.Call)):
            return cut
        if attribute.attr not in _ENDS or call.func is not attribute:
            return cut
        kind = _ENDS[attribute.attr]
        node = call
        cut = replace(cut, kind=kind or cut.kind, spot=replace(cut.spot, node=call))


_ROOTS = ("tensors", "outputs")


def _is_library(scene: Scene, spot: ExprAt) -> bool:
    value = scene.slicer.value(spot)
    return type(value).__name__ == "module"


def _unscaled(spot: ExprAt) -> ExprAt | None:
    """`scaler.scale(loss).backward()` is about the loss."""
    node = spot.node
    if isinstance(node, ast.Call) and spot.called == "scale" and len(node.args) == 1:
        return spot.inside(node.args[0])
    return None


def _switch(scene: Scene) -> Off | None:
    return next(switches(scene.slicer), None)
