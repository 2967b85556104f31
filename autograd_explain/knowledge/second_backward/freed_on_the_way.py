"""The derivative on the way to the failing loss that freed the graph, where only the source tells.

What a program calls may be too much for the history (scripted functions of a library in between):
then no earlier backward is known.  The lines that the loss is computed by are, and a call of
`torch.autograd.grad` among them which keeps no graph has freed what it went through.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from autograd_explain.inspect.dataflow import CutKind, ExprAt
from autograd_explain.inspect.dataflow.cut_kinds import cut_of
from autograd_explain.inspect.facts.expressions import computation
from autograd_explain.inspect.facts.torch_call import backward_roots
from autograd_explain.inspect.history import TraceEvent
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Place

from .freed_part import FreedPart


def freed_on_the_way(scene: Scene, part: FreedPart) -> FreedPart:
    """The part as what such a call has freed, where nothing else is known of it: one call, and the
    loss is computed from what it took the derivative of beside the derivative."""
    if part.first is not None or part.maker is not None or part.kept is not None:
        return part
    found = [call for root in backward_roots(scene) for call in _freeing(scene, root)]
    distinct = {scene.slicer.place(call).line_id: call for call in found}
    if len(distinct) != 1:
        return part
    place = scene.slicer.place(found[0])
    last = max((moment.order for moment in scene.history.steps), default=0)
    return replace(part, first=TraceEvent(last + 1, place, "grad", _led(scene, found[0])))


def _freeing(scene: Scene, root: ExprAt) -> Iterator[ExprAt]:
    made = list(computation(scene, root))
    taken = [s for s in made if cut_of(scene.slicer, s) is CutKind.GRADIENT]
    beside = {id(s.node) for s in computation(scene, root, ends={id(s.node) for s in taken})}
    for call in taken:
        outputs = call.argument(0, "outputs")
        makers = [] if outputs is None else scene.slicer.makers(outputs)
        if not _keeps_graph(call.node) and any(id(m.node) in beside for m in makers):
            yield call


def _keeps_graph(node: ast.AST) -> bool:
    """Whether a call says that it keeps the graph, or may."""
    if not isinstance(node, ast.Call) or len(node.args) > 2:
        return True
    said = [k.value for k in node.keywords if k.arg in (None, "retain_graph", "create_graph")]
    return any(not isinstance(v, ast.Constant) or v.value not in (False, None) for v in said)


def _led(scene: Scene, call: ExprAt) -> tuple[Place, ...]:
    """The lines that led to a call, outermost first, as far as these are known."""
    outer, lines = call.scope.call, list[Place]()
    while outer is not None:
        lines.insert(0, scene.slicer.place(outer))
        outer = outer.scope.call
    return tuple(lines)
