"""A derivative that is taken while recording is off: what has to be recorded for it, and where."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from autograd_explain.arguments import parameters
from autograd_explain.inspect.dataflow import ExprAt, Off
from autograd_explain.inspect.dataflow.grad_mode import is_inference
from autograd_explain.inspect.dataflow.reaching_definitions import FUNCTIONS
from autograd_explain.inspect.dataflow.safe_lookup import is_module
from autograd_explain.inspect.facts.expressions import computation
from autograd_explain.inspect.facts.no_graph import NoGraph
from autograd_explain.inspect.facts.statements import Form, write_of
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Place


@dataclass(frozen=True)
class Inside:
    """The statements from `first` to `last` are to be recorded.  In inference mode that takes
    more: `modes` name the mode of the user's, `options` are calls that take it as an argument.
    `asking` are names of tensors that it is differentiated by and that may not require grad."""

    first: Place
    last: Place
    apart: bool = True  #: recording is off for something else: an evaluation, an update in place
    inference: bool = False
    enabled: bool = False  #: they stand under `enable_grad()`, to no effect
    modes: tuple[Place, ...] = ()
    options: tuple[Place, ...] = ()
    asking: tuple[str, ...] = ()


def differentiated_inside(scene: Scene, found: NoGraph) -> Inside | None:
    """What is to be recorded; None where the derivative is asked for with recording on."""
    asked, off = scene.surfaced, found.off
    if asked is None or found.root is None:
        return None
    if off is not None and not _is_inside(scene, asked, off):
        return None
    if off is None and found.mode is None:
        return None
    derivative = asked.called == "grad"
    asking = tuple(_differentiated_by(scene, asked)) if derivative and found.mode else ()
    updates = off is not None and _updates(scene, off)
    asked, inner = _whole_way(scene, found.root, asked, off if updates else None)
    same = off is not None and off.scope.body is asked.scope.body
    if same and off is not None:
        index = scene.slicer.index(off.scope.source)
        inner = [s for s in inner if off.node in index.ancestors(s.node)] or inner
    first = min(inner, key=lambda s: (s.node.lineno, s.node.col_offset), default=asked)
    mode = found.mode
    return Inside(
        scene.slicer.place(first),
        scene.slicer.place(_asked_last(asked)),
        off is None or updates or (derivative and not same),
        is_inference(off) if mode is None else mode.inference,
        mode is not None and mode.enabled,
        () if off is None else scene.places_at(_modes(off)),
        () if mode is None else scene.places_at(_options(scene)),
        asking,
    )


def _asked_last(asked: ExprAt) -> ExprAt:
    """The last call in the same function of what takes the derivative: `self.d(du, t)`, for a
    second one, behind `du = self.d(u, t)`."""
    if not isinstance(asked.node, ast.Call):
        return asked
    calls = [n for n in ast.walk(asked.scope.body) if isinstance(n, ast.Call)]
    same = (n for n in calls if ast.unparse(n.func) == ast.unparse(asked.node.func))
    return asked.inside(max(same, key=lambda n: (n.lineno, n.col_offset), default=asked.node))


def _differentiated_by(scene: Scene, derivative: ExprAt) -> Iterator[str]:
    """The names that a derivative is taken by, where their tensors are leaves: a library that
    turns recording off hands over such, and the next ones may not ask for it.  What the function
    made itself asks for it or not in every call."""
    given = derivative.argument(1, "inputs")
    nodes = () if given is None else getattr(given.node, "elts", (given.node,))
    body = derivative.scope.body
    own = (n for n in ast.walk(body) if isinstance(n, ast.Attribute))
    asked = {ast.unparse(n.value) for n in own if n.attr in ("requires_grad", "requires_grad_")}
    handed = parameters(body) if isinstance(body, FUNCTIONS) else ()
    names = (derivative.inside(node) for node in nodes if isinstance(node, ast.Name))
    for name in names:
        tensor = None if name.text in asked else scene.slicer.tensor(name)
        late = tensor is not None and (name.text in handed or not tensor.requires_grad)
        if tensor is not None and tensor.is_leaf and late:
            yield name.text


def _is_inside(scene: Scene, asked: ExprAt, off: Off) -> bool:
    """Whether the call that asked stands in the block, or in what a function under it called."""
    at: ExprAt | None = asked
    while at is not None:
        if at.scope.body is off.scope.body:
            inside = scene.slicer.index(at.scope.source).ancestors(at.node)
            return off.node in inside or off.node in getattr(at.scope.body, "decorator_list", ())
        at = at.scope.call
    return False


def _updates(scene: Scene, off: Off) -> bool:
    """Whether leaves are written in place in the block or the function: as an optimizer's step
    does, which has to turn recording off for that."""
    block = off.node if isinstance(off.node, ast.With) else off.scope.body
    for statement in ast.walk(block):
        write = write_of(statement) if isinstance(statement, (ast.Expr, ast.AugAssign)) else None
        if write is not None:
            tensor = scene.slicer.tensor(ExprAt(off.scope, write.target))
            unknown = tensor is None and write.form is Form.METHOD
            if unknown or (tensor is not None and tensor.is_leaf and tensor.requires_grad):
                return True
    return False


def _whole_way(
    scene: Scene, root: ExprAt, asked: ExprAt, until: Off | None
) -> tuple[ExprAt, list[ExprAt]]:
    """The call of the function in which all of the differentiated value was computed from what
    carries gradient, and the operations there; of the function that `until` lies in, if any."""
    spots = [root, *scene.slicer.makers(root), *computation(scene, root)]
    while True:
        body = asked.scope.body
        risen = (_risen(s, body) for s in spots)
        inner = [s for s in risen if s is not None and _depends(scene, s)]
        call = asked.scope.call
        further = until is not None and body is not until.scope.body
        if call is None or not (further or any(_lost_before(scene, s) for s in inner)):
            return asked, inner
        asked = call


def _risen(spot: ExprAt, body: ast.AST) -> ExprAt | None:
    """The spot, or the call in this function that led there."""
    at: ExprAt | None = spot
    while at is not None and at.scope.body is not body:
        at = at.scope.call
    return at


def _depends(scene: Scene, spot: ExprAt) -> bool:
    """Whether a tensor is computed there of something that requires grad."""
    if isinstance(scene.slicer.value(spot), type) or is_module(scene.slicer.value(spot)):
        return False
    trace = scene.gradient_tracer.trace(spot)
    return trace.carries or bool(trace.cuts)


def _lost_before(scene: Scene, spot: ExprAt) -> bool:
    """Whether an argument of the function came without a graph that it should have had."""
    body = spot.scope.body
    given = parameters(body) if isinstance(body, FUNCTIONS) else ()
    for node in ast.walk(spot.node):
        if isinstance(node, ast.Name) and node.id in given:
            read = spot.inside(node)
            tensor = scene.slicer.tensor(read)
            if tensor is not None and not tensor.requires_grad and _depends(scene, read):
                return True
    return False


def _modes(off: Off) -> Iterator[ExprAt]:
    """`torch.inference_mode` of a block or a decorator."""
    node = off.node
    nodes = [i.context_expr for i in node.items] if isinstance(node, ast.With) else [node]
    for manager in nodes:
        function = manager.func if isinstance(manager, ast.Call) else manager
        if isinstance(function, ast.Attribute) and function.attr == "inference_mode":
            yield ExprAt(off.scope, function)


def _options(scene: Scene) -> Iterator[ExprAt]:
    """The calls of classes that take `inference_mode` for an argument: `Trainer(…)`."""
    for source, node in scene.index.nodes(ast.Call):
        call = scene.slicer.at(source, node)
        value = None if call.callable is None else scene.slicer.value(call.callable)
        if isinstance(value, type):
            with suppress(TypeError, ValueError):
                if "inference_mode" in inspect.signature(value).parameters:
                    yield call
