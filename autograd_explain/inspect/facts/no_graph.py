"""Why a loss has no graph: the expression that cut it, or what kept it from being recorded."""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass, replace

import torch

from ...arguments import values_given
from ...model import Certainty, Role, TensorFact
from ...program import is_installed
from ..dataflow import Cut, CutKind, ExprAt, GradientTrace, Off, best_cut, switches
from ..dataflow.grad_mode import switched_off_around
from ..history import TraceEvent
from ..scene import Scene
from .called_back import (
    asked_by_library,
    cut_in_callback,
    frozen_in_library,
    library_asked,
    returned_to_library,
)
from .expressions import expression_at, method_call
from .failing_loops import has_not_run
from .leaf_updates import leaf_updates
from .losing_call import CONTEXTS, losing_call
from .mode_of_library import LibraryMode, off_in_library
from .other_object import is_value


@dataclass(frozen=True, eq=False)
class NoGraph:
    """`root` is the expression backward was called on, `fact` what is known of its value.

    One of `cut`, `off` (what turned recording off) and `frozen` (modules all of whose parameters
    have requires_grad=False) tells why; all are empty where the source does not show it.
    `still_off` says that recording was off when the failure was looked at, `library` where a
    library that the user called lost the graph, `mode` where one called the user's code with
    recording off.
    """

    root: ExprAt | None
    fact: TensorFact
    trace: GradientTrace
    cut: Cut | None = None
    off: Off | None = None
    frozen: tuple[ExprAt, ...] = ()
    still_off: bool = False
    library: TraceEvent | None = None
    certainty: Certainty = Certainty.INFERRED  #: of what is known of the library
    mode: LibraryMode | None = None

    @property
    def root_text(self) -> str:
        names = self.fact.names[:1] if self.root is None else (self.root.text,)
        return names[0] if names else ""

    @property
    def recording_off(self) -> bool:
        """Whether the cause is the gradient mode rather than an operation."""
        off = self.cut is not None and self.cut.kind is CutKind.NO_GRAD
        return self.still_off or self.off is not None or off or self.mode is not None


def find(scene: Scene) -> NoGraph | None:
    """What is known of a backward that found no graph; None where an update lost the leaf."""
    tensor = _tensor(scene)
    if (tensor is not None and tensor.requires_grad) or _is_other(scene):
        return None
    root = backward_root(scene)
    fact = _fact(scene, tensor, root)
    if root is None:
        return _from_run(scene, NoGraph(None, fact, GradientTrace(False)))
    trace = scene.gradient_tracer.trace(root)
    met = tuple(c for c in trace.cuts if not has_not_run(scene, scene.place_at(c.spot)))
    trace = replace(trace, cuts=met)
    if not torch.is_grad_enabled():
        return NoGraph(root, fact, trace, None, _switch(scene), still_off=True)
    if leaf_updates(scene, root):
        return None  # nothing was cut: an update took the leaf's name
    cut = None if trace.carries or trace.stuck else _whole(scene, best_cut(trace.cuts))
    mode = off_in_library(scene) if cut is None and not trace.frozen else None
    if mode is not None and not _is_own(scene, mode):
        return NoGraph(root, fact, trace, mode=mode)
    off = None if mode is None else _decorator_around(scene, root)
    if off is not None:
        return NoGraph(root, fact, trace, off=off)
    frozen = trace.stuck or trace.frozen
    found = NoGraph(root, fact, trace, cut, None if cut is None else cut.off, frozen)
    if cut is None and trace.frozen:
        # What had a gradient until the program cut it is not the frozen part.
        seen = _observed(scene, replace(found, frozen=()))
        return seen or _lost_in_library(scene, found) or found
    return found if cut is not None else _from_run(scene, found)


def _decorator_around(scene: Scene, root: ExprAt) -> Off | None:
    """The decorator of the user's under which `root` was made: what came from outside lost its
    graph elsewhere."""
    around = (switched_off_around(scene.slicer, made) for made in scene.slicer.makers(root))
    return next((off for off in around if off is not None), None)


def _is_own(scene: Scene, mode: LibraryMode) -> bool:
    """Whether the line that turned recording off is torch's for a decorator of the user's."""
    asked = scene.surfaced
    return (
        mode.line.file == CONTEXTS
        and asked is not None
        and switched_off_around(scene.slicer, asked) is not None
    )


def by_index(scene: Scene, found: NoGraph) -> Cut | None:
    """`image[points.long()]`: where nothing else leads to a leaf, an index was to be trained."""
    if found.root is None or found.trace.carries:
        return None
    cut = best_cut(scene.gradient_tracer.through_indices.trace(found.root).cuts)
    piecewise = cut is not None and cut.kind in (CutKind.INTEGER, CutKind.COMPARE)
    return cut if piecewise else None


def _lost_in_library(scene: Scene, found: NoGraph) -> NoGraph | None:
    """A call of a library that turned recording off, or was handed something with gradient: what
    is frozen behind it has nothing to do with that."""
    if found.root is None or not _calls_library(scene):
        return None
    call = losing_call(scene, found.root)
    if call is None or call.inside is None or ".detach()" in call.inside.source:
        call = losing_call(scene, found.root, handed=True)
    return None if call is None else replace(found, frozen=(), library=call)


def _from_run(scene: Scene, found: NoGraph) -> NoGraph:
    """What the text alone does not show: a library between the user's lines lost the graph, or
    what the user gave it has none."""
    called = cut_in_callback(scene) if library_asked(scene) is not None else None
    if called is not None:
        trace, blamed = called
        return replace(found, trace=trace, cut=_whole(scene, blamed), off=blamed.off)
    observed = _observed(scene, found)
    if observed is not None or not _calls_library(scene):
        return observed or found
    lost = scene.inferred.lost
    if lost is None:
        root = returned_to_library(scene) if found.root is None else found.root
        call = None if root is None else losing_call(scene, root)
        found = found if call is None else replace(found, root=root)
        return replace(found, frozen=frozen_in_library(scene), library=call)
    spot = None if lost.own is None else expression_at(scene, lost.own.place)
    if spot is not None:
        trace = scene.gradient_tracer.trace(spot)
        cut = _whole(scene, best_cut(trace.cuts))
        if cut is not None:
            return replace(found, trace=trace, cut=cut, off=cut.off)
    return found if lost.end.inside is None else replace(found, library=lost.end)


def _observed(scene: Scene, found: NoGraph) -> NoGraph | None:
    """What a recording has seen of it."""
    recording, root = scene.incident.recording, _tensor(scene)
    if recording is None or root is None or not recording.covers(scene.incident):
        return None
    for moment in recording.cuts_behind(root, scene.program):
        if moment.inside is not None:
            return replace(found, library=moment, certainty=Certainty.OBSERVED)
        spot = expression_at(scene, moment.place)
        cut = None if spot is None else scene.gradient_tracer.cut_at(spot)
        if cut is not None:
            return replace(found, cut=_whole(scene, cut), off=cut.off)
    return None


def _calls_library(scene: Scene) -> bool:
    """Whether an installed package that works on tensors is loaded by the program."""
    sources = (*scene.index.cells, *scene.index.files)
    names = {full.partition(".")[0] for source in sources for _, full in source.imports}
    return any(_is_installed(name) for name in names)


def _is_installed(name: str) -> bool:
    path = vars(sys.modules.get(name, sys)).get("__file__")
    return name not in _OWN and isinstance(path, str) and is_installed(path)


_OWN = ("torch", "numpy")


def _fact(scene: Scene, tensor: torch.Tensor | None, root: ExprAt | None) -> TensorFact:
    name = asked_by_library(scene) if root is None else root.text
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


def backward_root(scene: Scene) -> ExprAt | None:
    """`loss` of `loss.backward()`, `autograd.backward(loss)`, `autograd.grad(loss, x)`; of a
    library's method (`self.manual_backward(loss)`) where it is what that went backward from."""
    if library_asked(scene) is not None:
        return _handed_over(scene)
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


def _handed_over(scene: Scene) -> ExprAt | None:
    """The argument of the user's call that is the very tensor without a graph."""
    call, tensor = scene.surfaced, _tensor(scene)
    if call is None or tensor is None or not isinstance(call.node, ast.Call):
        return None
    given = values_given(call.node)
    return next((s for s in map(call.inside, given) if scene.slicer.value(s) is tensor), None)


_ENDS = {
    "numpy": CutKind.NUMPY,
    "item": CutKind.NUMBER,
    "tolist": CutKind.NUMBER,
    "cpu": None,
    "clone": None,
}


def _whole(scene: Scene, cut: Cut | None) -> Cut | None:
    return None if cut is None else whole_cut(scene, cut)


def whole_cut(scene: Scene, cut: Cut) -> Cut:
    """`x.detach().cpu().numpy()` cuts as one expression, and towards NumPy."""
    if cut.kind not in (CutKind.DETACH, CutKind.NUMPY):
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
