"""What a loop reads in every round and was computed before it."""

from __future__ import annotations

import ast
import re
from collections import deque
from collections.abc import Collection, Iterator
from types import ModuleType

import torch

from autograd_explain.arguments import parameters
from autograd_explain.incident import LiveFrame
from autograd_explain.inspect.dataflow.safe_lookup import MISSING, in_frame
from autograd_explain.inspect.dataflow.syntax import container_of
from autograd_explain.inspect.facts.failing_loops import loops_around
from autograd_explain.inspect.history import TraceEvent
from autograd_explain.inspect.live.graph import GraphNode
from autograd_explain.inspect.live.names import NamedTensor
from autograd_explain.inspect.scene import Scene
from autograd_explain.isolation.type_checks import bases, elements, is_a, items, table_of
from autograd_explain.model import Place
from autograd_explain.program import Source, expression_of, is_of_package, own_nodes

_OWN_NAME = re.compile(r"\w+")
_HOLDERS = (torch.Tensor, dict, list, tuple)
_NO_RESULT = (torch.Tensor, torch.nn.Module, torch.optim.Optimizer, type, ModuleType)
_MOST_PARTS = 2_000


def made_outside(scene: Scene) -> list[GraphNode]:
    """The nodes of the failing graph behind tensors that live under names, or in containers of
    names, which the loop around the failure reads and leaves as they are; newest first."""
    fixed = set(_fixed_names(scene))
    starts = []
    for named in scene.names.tensors if fixed else ():
        root = _OWN_NAME.match(named.name)
        inside = named.name[0 if root is None else root.end() :]
        if root is not None and root[0] in fixed and "." not in inside:
            grad_fn = None if named.tensor.is_leaf else named.tensor.grad_fn
            node = None if grad_fn is None else scene.graph.find(grad_fn)
            starts += [] if node is None else [node]
    below = {id(n.node) for n in scene.graph.below(starts)}
    return [n for n in scene.graph.inner if id(n.node) in below]


def read_in_loop(scene: Scene, name: str) -> Place | None:
    """The first statement of a loop around the failure that reads `smooth` of `smooth['beta']`;
    in a module also by a function of the user's that it calls."""
    root = _OWN_NAME.match(name)
    for live, source, loop in loops(scene) if root is not None else ():
        in_module = source.function_around(loop) is None
        for statement in loop.body:
            names = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name)}
            names |= _read_by_called(scene, statement, set()) if in_module else set()
            if root is not None and root[0] in names:
                return source.place(statement.lineno, live.code.co_name, statement)
    return None


def _read_by_called(scene: Scene, node: ast.AST, seen: set[str]) -> set[str]:
    """The globals that the functions called there read, and those that these call."""
    found = set[str]()
    for call in (n for n in ast.walk(node) if isinstance(n, ast.Call)):
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        called = scene.index.function(name) if name and name not in seen else None
        if called is not None:
            seen.add(name)
            names = [n for n in own_nodes(called.node) if isinstance(n, ast.Name)]
            own = {*parameters(called.node), *(n.id for n in names if _is_stored(n))}
            found |= {n.id for n in names} - own
            found |= _read_by_called(scene, called.node, seen)
    return found


def _is_stored(node: ast.Name) -> bool:
    return not isinstance(node.ctx, ast.Load)


def made_by_text(scene: Scene, name: str) -> tuple[TraceEvent, ...]:
    """The statements before the loop that gave `layers` of `layers[0][1]` its value, and what that
    is computed from with a graph, where the loop only reads it: as the text tells, oldest first.
    () where a name has several values, or one that stands elsewhere."""
    root = _OWN_NAME.match(name)
    for live, source, loop in loops(scene) if root is not None else ():
        nodes = [n for s in loop.body for n in ast.walk(s)]
        if root is None or root[0] in {changed for node in nodes for changed in _works_with(node)}:
            return ()
        found = _assigned(scene, source.function_around(loop), root[0])
        before = [(s, n) for s, n in found or () if s is not source or n.lineno < loop.lineno]
        if found is None or len(before) != len(found):
            return ()
        function = live.code.co_name if source.function_around(loop) else None
        places = [s.place(n.lineno, function, n) for s, n in found]
        outer = scene.path[: scene.incident.user_frames.index(live)]
        orders = range(-len(places), 0)  # before all that the history knows
        pairs = zip(orders, places, strict=True)
        return tuple(TraceEvent(order, p, "assign", outer) for order, p in pairs)
    return ()


def made_by_constructor(scene: Scene, name: str) -> TraceEvent | None:
    """The one statement of the user's that assigns the attribute under which an object holds a
    value, where that stands in its constructor."""
    owner = scene.names.holder(name)
    if owner is None:
        return None
    attribute = name.rpartition(".")[2]
    classes = [cls.__name__ for cls in bases(type(owner))]
    found = [pair for cls in classes for pair in scene.index.attribute(cls, attribute)]
    if len(found) != 1:
        return None
    source, node = found[0]
    function = source.function_around(node)
    if function is None or function.name != "__init__":
        return None
    return TraceEvent(-1, source.place(node.lineno, function.name, node), "assign")


def stored_by_methods(scene: Scene, holder: object, name: str) -> bool:
    """Whether the attribute of an object under which a value lives, or an element of it, is given
    its value by methods that are called later than the constructor."""
    attribute = name.partition("[")[0].rpartition(".")[2]
    for source, cls in (d for c in bases(type(holder)) for d in scene.index.classes(c.__name__)):
        for node in (n for n in ast.walk(cls) if isinstance(n, (ast.Assign, ast.AugAssign))):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            function = source.function_around(node)
            if function is not None and function.name != "__init__":
                stored = map(container_of, targets)
                if any(isinstance(t, ast.Attribute) and t.attr == attribute for t in stored):
                    return True
    return False


def reads_of(scene: Scene, name: str) -> tuple[Place, ...]:
    """Where the program reads an attribute of the name under which an object holds a value."""
    reads = scene.index.reads(name.rpartition(".")[2])
    return tuple(source.place(node.lineno, None, node) for source, node in reads)


def _assigned(
    scene: Scene, scope: ast.AST | None, name: str
) -> list[tuple[Source, ast.Assign]] | None:
    """The one statement that assigns each of the names with a graph that a name comes from."""
    inside = {id(n.node) for n in scene.graph.inner}
    graphs = [n.name for n in scene.names.tensors if id(n.tensor.grad_fn) in inside]
    carrying = {found[0] for n in graphs if (found := _OWN_NAME.match(n)) is not None}
    pending, statements = [name], dict[str, tuple[Source, ast.Assign]]()
    while pending:
        name = pending.pop()
        made = [(s, n) for s, n in scene.index.nodes(ast.Assign) if name in _bound(n)]
        here = [(s, n) for s, n in made if s.function_around(n) is scope]
        if len(here) != 1:
            return None
        statements[name] = here[0]
        read = {n.id for n in ast.walk(here[0][1].value) if isinstance(n, ast.Name)}
        pending += [n for n in sorted(read & carrying) if n not in statements and n not in pending]
    return sorted(statements.values(), key=lambda found: (found[0].cell or 0, found[1].lineno))


def _bound(statement: ast.Assign) -> set[str]:
    stores = (n for t in statement.targets for n in ast.walk(t) if isinstance(n, ast.Name))
    return {n.id for n in stores if isinstance(n.ctx, ast.Store)}


def _fixed_names(scene: Scene) -> Iterator[str]:
    """The names of tensors and containers that the loops around the failing lines only read."""
    for live, _, loop in loops(scene):
        yield from fixed_in(live, loop)


def fixed_in(live: LiveFrame, loop: ast.For | ast.While) -> set[str]:
    """The names of tensors and containers that a loop of a frame only reads."""
    nodes = [n for s in loop.body for n in ast.walk(s)]
    target = () if isinstance(loop, ast.While) else ast.walk(loop.target)
    given = {name for node in (*target, *nodes) for name in _changed(node)}
    read = {n.id for n in nodes if isinstance(n, ast.Name)} - given
    values = {name: in_frame(expression_of(name), live.frame) for name in read}
    return {n for n, v in values.items() if v is not MISSING and is_a(v, _HOLDERS)}


def loops(scene: Scene) -> Iterator[tuple[LiveFrame, Source, ast.For | ast.While]]:
    """The loops around the failing lines of all of the user's frames."""
    for live in scene.incident.user_frames:
        source = scene.program.source_of(live.code)
        if source is not None:
            yield from ((live, source, loop) for loop in loops_around(source, live.line))


def called_around(scene: Scene) -> list[ast.AST]:
    """The functions of the user's that the loops around the failing line, and the functions that
    failed, call: by name, or as what is called is now."""
    around = [(source, n) for _, source, loop in loops(scene) for n in ast.walk(loop)]
    failed = [scope for _, scope in scene.slicer.frame_chain if scope.function is not None]
    around += [(scope.source, n) for scope in failed for n in own_nodes(scope.body)]
    calls = [(source, node) for source, node in around if isinstance(node, ast.Call)]
    found = {id(b): b for s, n in calls if (b := _body(scene, s, n)) is not None}
    return list(found.values())


def _body(scene: Scene, source: Source, call: ast.Call) -> ast.AST | None:
    definition = scene.index.called(source, call)
    if definition is not None:
        return definition.node
    value = scene.slicer.value(scene.slicer.at(source, call.func))
    entered = None if value is MISSING else scene.slicer.entry(value)
    return None if entered is None else entered.body


def kept_inside(scene: Scene, nodes: Collection[int]) -> NamedTensor | None:
    """A tensor of these nodes without a name that an object of a package keeps for itself, `out` of
    a loop that only reads `loss_of(out, y)`: what it computes when asked it hands out again."""
    for live, _, loop in loops(scene):
        inside = [n for s in loop.body for n in ast.walk(s)]
        changed = {name for node in inside for name in _works_with(node)}
        read = dict.fromkeys(n.id for n in inside if isinstance(n, ast.Name))
        for name in (n for n in read if n not in changed):
            value = in_frame(expression_of(name), live.frame)
            if value is not MISSING and is_of_package(type(value)) and not is_a(value, _NO_RESULT):
                tensors = (t for t in _tensors_in(value) if not t.is_leaf)
                found = next((t for t in tensors if id(t.grad_fn) in nodes), None)
                if found is not None and not scene.names.of(found):
                    return NamedTensor(name, found)
    return None


def _tensors_in(owner: object) -> Iterator[torch.Tensor]:
    """The tensors that an object holds, however deep, without those of modules."""
    pending, seen = deque([owner]), set[int]()
    while pending and len(seen) < _MOST_PARTS:
        value = pending.popleft()
        if id(value) in seen or is_a(value, (torch.nn.Module, type, ModuleType)):
            continue
        seen.add(id(value))
        if is_a(value, torch.Tensor):
            yield value
        elif is_a(value, (list, tuple)):
            pending += elements(value)
        else:
            held = value if is_a(value, dict) else table_of(value)
            pending += (part for _, part in items(held))


def is_in_graph(scene: Scene, tensor: torch.Tensor) -> bool:
    """Whether the failing graph goes through what computed a tensor."""
    return not tensor.is_leaf and scene.graph.find(tensor.grad_fn) is not None


def _works_with(node: ast.AST) -> Iterator[str]:
    """The names that a node changes, and those that it calls: a module may keep a value."""
    yield from _changed(node)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        yield node.func.id


def _changed(node: ast.AST) -> Iterator[str]:
    """The names that a node binds, or whose value it changes: `x = …`, `x[0] = …`, `x.append(…)`,
    `x += …`."""
    if isinstance(node, ast.Name) and _is_stored(node):
        yield node.id
    inner: ast.AST | None = None
    if isinstance(node, (ast.Subscript, ast.Attribute)) and not isinstance(node.ctx, ast.Load):
        inner = node.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        inner = node.func.value
    while isinstance(inner, (ast.Subscript, ast.Attribute)):
        inner = inner.value
    if isinstance(inner, ast.Name):
        yield inner.id
