"""The tensor that NumPy asked for, and how it got there: by itself, inside a container, or as
what a function of the user's returned.

Everything else that the same call would ask for is found, too: detaching only the first of two
arguments leads to the same error again.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch

from autograd_explain.arguments import bound_arguments, values_given
from autograd_explain.inspect.dataflow import Each, ExprAt
from autograd_explain.inspect.dataflow.cut_kinds import cut_of
from autograd_explain.inspect.dataflow.grad_mode import switched_off_around
from autograd_explain.inspect.dataflow.reaching_definitions import key_of
from autograd_explain.inspect.dataflow.syntax import head_name, statements_of
from autograd_explain.inspect.facts.expressions import method_call
from autograd_explain.inspect.facts.handed_to_library import handed
from autograd_explain.inspect.facts.value_names import outer_names
from autograd_explain.inspect.live.class_source import function_node
from autograd_explain.inspect.scene import Scene
from autograd_explain.program import called_name

from .containers import held, items_of, numbers_only
from .library_call import made_arrays
from .numpy_reads import ARRAY, DETACHED, Read, handed_back, reads_of, returned

_DIRECT = ("numpy", "__array__")


@dataclass(frozen=True, eq=False)
class NumpyCall:
    """`reads` are the expressions to take out of the graph, the failing one first; `stored` are
    the expressions that were put into its container.  `inside`: a library asks for the array of
    what it computes from the tensor, or of what it was handed back."""

    tensor: torch.Tensor | None
    reads: tuple[Read, ...]
    stored: tuple[ExprAt, ...] = ()
    names: tuple[str, ...] = ()
    inside: bool = False

    @property
    def shown(self) -> ExprAt:
        return self.reads[0].spot

    @property
    def numbers(self) -> bool:
        """Whether everything in the container is a single number."""
        return numbers_only(self.reads[0].value)


def find(scene: Scene) -> NumpyCall | None:
    """What was to become an array at the failing line."""
    tensor, at = _asked(scene), scene.surfaced
    for name in _DIRECT:
        shown = method_call(scene, name)
        if shown is not None and (tensor is None or _is_call_of(at, shown)):
            value = tensor if tensor is not None else scene.slicer.value(shown)
            live = value if isinstance(value, torch.Tensor) else None
            if live is not None and not live.requires_grad:
                continue  # this one succeeded
            reads = (Read(shown, DETACHED, live), *_same_calls(scene, name, shown))
            return _described(scene, live, reads)
    inside = tensor is None
    given = _handed_over(scene, at) if tensor is None else [tensor]
    if not given or at is None:
        return None
    tensor = given[0]
    reads = _failing_reads(scene, at, tensor) or tuple(returned(scene, at, tensor))
    given_back = not reads and not inside
    reads = tuple(handed_back(scene, tensor)) if given_back else reads
    if inside:  # other tensors may keep their graph
        reads = tuple(r for r in reads if any(r.value is t or held(r.value, t) for t in given))
    if not reads:
        return None
    reads = (*reads, *_later(scene, at, reads, inside))
    if inside:  # it makes the array itself, of a tensor
        reads = tuple(replace(r, way=DETACHED) if r.way == ARRAY else r for r in reads)
    return replace(_described(scene, tensor, reads), inside=inside or given_back)


def _handed_over(scene: Scene, at: ExprAt | None) -> list[torch.Tensor]:
    """The tensors with a graph that the failing call hands to a library, which asks for their
    arrays itself, the failing one first; [] where it is not known which of several these are."""
    values = {} if at is None else handed(scene, at)
    inside = [v for value in values.values() for v in (value, *(items_of(value) or ()))]
    tensors = {id(v): v for v in inside if isinstance(v, torch.Tensor) and v.requires_grad}
    if len(tensors) > 1:
        tensors = {id(v): v for v in made_arrays(scene) if id(v) in tensors}
    return list(tensors.values())


def _is_call_of(at: ExprAt | None, receiver: ExprAt) -> bool:
    function = getattr(getattr(at, "node", None), "func", None)
    return getattr(function, "value", None) is receiver.node


def _asked(scene: Scene) -> torch.Tensor | None:
    """`self` of `Tensor.__array__` (torch/_tensor.py), which NumPy calls."""
    for live in reversed(scene.incident.frames):
        if live.function in ("__array__", "numpy") and "torch" in live.filename:
            value = live.frame.f_locals.get("self")
            return value if isinstance(value, torch.Tensor) else None
    return None


def _failing_reads(scene: Scene, at: ExprAt, tensor: torch.Tensor) -> tuple[Read, ...]:
    """What the failing expression reads with a graph, the tensor asked for first."""
    for spot, nodes in _given(scene, at):
        entered = spot is at or not isinstance(at.node, ast.Call)
        values = handed(scene, spot) if entered else {}
        found = [r for n in nodes for r in reads_of(scene, spot.inside(n), values, tensor)]
        if found:
            found.sort(key=lambda r: not (r.value is tensor or held(r.value, tensor)))
            return tuple(found)
    return ()


def _given(scene: Scene, at: ExprAt) -> Iterator[tuple[ExprAt, list[ast.expr]]]:
    """What may have been made an array: the arguments of the failing call, the value written into
    an array, then the arguments of the statement's other calls."""
    statement = scene.slicer.statement(at)
    if isinstance(at.node, ast.Call):
        yield at, values_given(at.node)
    written = isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript)
    if written or isinstance(statement, ast.AugAssign):
        assert isinstance(statement, (ast.Assign, ast.AugAssign))
        yield at, [statement.value]
    for node in ast.walk(statement) if statement is not None else ():
        if isinstance(node, ast.Call) and node is not at.node:
            yield at.inside(node), values_given(node)


def _same_calls(scene: Scene, name: str, shown: ExprAt) -> Iterator[Read]:
    """The other `y.numpy()` of the statement and of those behind it: they would fail next."""
    for later, rebound in _from_here(scene, shown):
        for node in _own_calls(later):
            owner = node.func.value if isinstance(node.func, ast.Attribute) else None
            if owner is None or called_name(node) != name or owner is shown.node:
                continue
            spot, key = shown.inside(owner), key_of(owner)
            value = _live(scene, spot, rebound)
            made = scene.slicer.makers(spot) if key is None or key in rebound else []
            if value is not None or any(scene.gradient_tracer.trace(m).carries for m in made):
                yield Read(spot, DETACHED, value)


def _later(scene: Scene, at: ExprAt, reads: tuple[Read, ...], inside: bool) -> Iterator[Read]:
    """Tensors in later calls of NumPy's, or of the function that failed: these would fail next.
    Where it makes the arrays `inside`, it may keep what it is given in other places."""
    statement = scene.slicer.statement(at)
    given = {k: r.value for r in reads if r.way == ARRAY and (k := r.spot.key)}
    failed = {id(r.spot.node) for r in reads}
    slots = {s for s, n in _slots(at.node) if not failed.isdisjoint(map(id, ast.walk(n)))}
    for later, rebound in _from_here(scene, at):
        for node in _own_calls(later) if later is not statement else ():
            numpy = _fails_with_tensors(scene, at.inside(node))
            if not numpy and not _is_same(at.node, node):
                yield from _made_arrays_of(scene, at.inside(node))
                continue
            for spot in (
                at.inside(n) for s, n in _slots(node) if numpy or not inside or s in slots
            ):
                key = spot.key
                value = given.get(key) if key is not None and key not in rebound else None
                value = _live(scene, spot, rebound) if value is None else value
                if value is not None:
                    yield Read(spot, ARRAY, value)


def _made_arrays_of(scene: Scene, call: ExprAt) -> Iterator[Read]:
    """What another function is given that it makes an array of, whatever it is called with, and
    that something trained has computed."""
    function = None if call.callable is None else scene.slicer.value(call.callable)
    body = function_node(function)
    if body is None or not isinstance(call.node, ast.Call):
        return
    plain = (s for s in body.body if not hasattr(s, "body") and not _chooses(s))
    asked = {head_name(n) for s in plain for n in ast.walk(s) if _keeps_graph(n)}
    for name, node in bound_arguments(body, call.node).items():
        spot = call.inside(node)
        if name in asked and spot.key is not None and _is_computed(scene, spot):
            yield Read(spot, DETACHED)


def _chooses(statement: ast.stmt) -> bool:
    return any(isinstance(n, (ast.IfExp, ast.BoolOp)) for n in ast.walk(statement))


def _keeps_graph(node: ast.AST) -> bool:
    """`value.clone().cpu().numpy()`, with no `detach` on the way, nor `force=True`."""
    ways = {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}
    plain = isinstance(node, ast.Call) and called_name(node) == "numpy" and not node.keywords
    return plain and not ways & {"detach", "data"}


def _is_computed(scene: Scene, spot: ExprAt) -> bool:
    """Whether a value has the graph of what is trained, as far as the text tells: also of what a
    method of a module gives."""
    made = scene.slicer.makers(spot)
    owners = ((m, m.receiver) for m in made if switched_off_around(scene.slicer, m) is None)
    modules = (scene.slicer.value(o) for m, o in owners if o and not cut_of(scene.slicer, m))
    trained = (p for m in modules if isinstance(m, torch.nn.Module) for p in m.parameters())
    carried = (scene.gradient_tracer.trace(m).carries for m in made)
    return any(carried) or any(p.requires_grad for p in trained)


def _slots(call: ast.AST) -> list[tuple[int | str | None, ast.expr]]:
    """What a call is given, by position and by name."""
    if not isinstance(call, ast.Call):
        return []
    return [*enumerate(call.args), *((k.arg, k.value) for k in call.keywords)]


def _is_same(failed: ast.AST, later: ast.Call) -> bool:
    return isinstance(failed, ast.Call) and ast.unparse(failed.func) == ast.unparse(later.func)


def _live(scene: Scene, spot: ExprAt, rebound: set[str]) -> torch.Tensor | None:
    """The tensor with a graph that a name still is by then."""
    value = scene.slicer.tensor(spot) if spot.key not in rebound else None
    return value if isinstance(value, torch.Tensor) and value.requires_grad else None


def _from_here(scene: Scene, at: ExprAt) -> Iterator[tuple[ast.stmt, set[str]]]:
    """The statement of an expression and those behind it in the same function or cell, each with
    the names that have got another value by then."""
    statement, rebound = scene.slicer.statement(at), set[str]()
    for later in statements_of(at.scope.body):
        if statement is None or (later is not statement and later.lineno <= statement.lineno):
            continue
        yield later, rebound
        rebound |= {key for t in _targets(later) if (key := key_of(t)) is not None}


def _targets(statement: ast.stmt) -> Iterator[ast.expr]:
    nodes = ast.walk(statement) if not hasattr(statement, "body") else ()
    for node in nodes:
        if isinstance(node, ast.expr) and isinstance(getattr(node, "ctx", None), ast.Store):
            yield node


def _own_calls(statement: ast.stmt) -> Iterator[ast.Call]:
    """The calls of a statement, its inner statements left out."""
    pending: list[ast.AST] = [statement]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Call):
            yield node
        pending += [c for c in ast.iter_child_nodes(node) if not isinstance(c, ast.stmt)]


def _fails_with_tensors(scene: Scene, call: ExprAt) -> bool:
    """Whether NumPy converts its arguments: `np.mean(x)` calls `x.mean()` and keeps the graph,
    while compiled functions and everything with `axis=` need an array (NumPy 2.4)."""
    assert isinstance(call.node, ast.Call)
    function = scene.slicer.value(call.inside(call.node.func))
    module = str(getattr(function, "__module__", None) or type(function).__module__)
    if not module.startswith("numpy"):
        return False
    alone = len(call.node.args) == 1 and not call.node.keywords
    own = getattr(function, "__name__", "")
    return not (alone and hasattr(torch.Tensor, own) and type(function).__name__ != "ufunc")


# -- names and what filled the container ------------------------------------------------------


def _described(scene: Scene, tensor: torch.Tensor | None, reads: tuple[Read, ...]) -> NumpyCall:
    shown = reads[0].container or reads[0].spot
    stored = tuple(_stored(scene, shown)) if reads[0].container is not None else ()
    names = dict.fromkeys([*_names(scene, shown), *(s.text for s in stored)])
    return NumpyCall(tensor, reads, stored, tuple(names))


def _stored(scene: Scene, container: ExprAt) -> Iterator[ExprAt]:
    """What statements put into the container, and the elements it was built with here.

    What a function returns belongs to all of its callers: that is left as it is.
    """
    slicer = scene.slicer
    seen: set[int] = set()
    if isinstance(container.node, ast.Call):
        return
    part = Each.VALUE if isinstance(slicer.value(container), dict) else Each.ITEM
    elements = [
        maker.inside(n)
        for maker in slicer.makers(container)
        if _is_seen_by(scene, container, maker)
        for n in _elements(maker.node)
    ]
    for spot in (*slicer.insertions(container, part), *elements):
        trace = scene.gradient_tracer.trace(spot)
        known = isinstance(spot.node, ast.Constant) or (trace.cuts and not trace.carries)
        if id(spot.node) not in seen and not known:
            seen.add(id(spot.node))
            yield spot


def _is_seen_by(scene: Scene, container: ExprAt, maker: ExprAt) -> bool:
    """Whether a display was written where the failure passed, or on a cell's top level."""
    body = maker.scope.body
    passed = scene.slicer.frame_scope(body) is not None
    return body is container.scope.body or passed or isinstance(body, ast.Module)


def _elements(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.ListComp):
        return [node.elt]
    return list(node.elts) if isinstance(node, (ast.List, ast.Tuple)) else []


def _names(scene: Scene, shown: ExprAt) -> Iterator[str]:
    yield from outer_names(scene, shown)
    yield shown.text.lstrip("*")
    for node in ast.walk(shown.node):
        value = scene.slicer.value(shown.inside(node)) if isinstance(node, ast.Name) else None
        if isinstance(node, ast.Name) and isinstance(value, torch.Tensor) and value.requires_grad:
            yield node.id
