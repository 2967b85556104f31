"""Checkpointed functions: why one does something else when backward runs it again, and which was
never recorded."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from types import FunctionType, MethodType
from typing import Any, TypeGuard, cast

import torch

from ...arguments import parameters
from ...isolation.type_checks import is_a
from ...model import Place
from ...program import Program, Source, called_name, last_name, own_nodes
from ...program_index import Definition, index_of
from ..dataflow import ExprAt
from ..dataflow.calls import closed_over
from ..dataflow.syntax import container_of, head_name
from ..scene import Scene
from .expressions import computation
from .no_graph import NoGraph

#: Methods that change what they are called on, or take something out of it.
_CHANGING = frozenset(
    "append extend insert pop popleft popitem clear update add remove discard setdefault".split()
)
_RANDOM = ("random.", "np.random.", "numpy.random.", "time.", "uuid.", "secrets.")
_MANY = 400
_MODES = ("eval", "train", "set_autocast_enabled", "set_grad_enabled")


@dataclass(frozen=True)
class Divergence:
    """A statement that makes a second run of `function` differ: it changes a "state", draws a
    "random" number, or changes the "mode" between the runs.  `switch` is the call by which the
    program has a library checkpoint what it runs."""

    kind: str
    function: str
    place: Place
    switch: Place | None = None


def suspects(scene: Scene) -> list[Divergence]:
    """What speaks for a difference in the checkpointed functions of the user's, surest first."""
    found: list[Divergence] = []
    passed = _passed(scene)
    for source, call in passed:
        for body in _bodies(scene, source, call):
            # `block`, for the forward of a module that is given.
            name = ast.unparse(call.args[0]) if body.name == "forward" else body.name or "lambda"
            found += [replace(d, function=name) for d in _of_run(scene, body)]
        found += _between(source, call)
    if not passed:
        found += _in_library(scene)
    order = ("state", "random", "mode")
    unique = {s.place: s for s in reversed(found)}
    return sorted(unique.values(), key=lambda s: order.index(s.kind))


def _in_library(scene: Scene) -> Iterator[Divergence]:
    """What the user's modules do inside those of a library, which checkpoints what it runs."""
    switch = switched_on(scene)
    for name, body in _parts(scene):
        yield from (replace(d, function=name, switch=switch) for d in _of_run(scene, body))


def _of_run(scene: Scene, body: Definition) -> Iterator[Divergence]:
    """What a function does, and what it calls."""
    ran = list(_run_by(scene, body))
    read = {path for b in ran for path in _read(b)}
    yield from (d for b in ran for d in _inside(b, read))


def _parts(scene: Scene) -> Iterator[tuple[str, Definition]]:
    """The classes of the user's modules that stand inside other modules, which a library may
    checkpoint, and the user's hooks there, with what their call runs."""
    seen = set[int]()
    roots = [value for _, value in scene.names.objects if isinstance(value, torch.nn.Module)]
    for module in (m for root in roots for m in root.modules() if m is not root):
        own = scene.index.method(type(module), "forward")
        hooks = (*module._forward_pre_hooks.values(), *module._forward_hooks.values())
        for body in (own, *map(scene.index.definition, hooks)):
            if body is not None and id(body.node) not in seen:
                seen.add(id(body.node))
                yield type(module).__name__ if body is own else body.name or "lambda", body


def switched_on(scene: Scene) -> Place | None:
    """The one call by which the program has a library checkpoint its layers:
    transformers' `model.gradient_checkpointing_enable()`, timm's `set_grad_checkpointing(True)`."""
    calls = ((s, c) for s, c in scene.index.nodes(ast.Call) if _SWITCH in called_name(c))
    found = [source.place(call.lineno, None, call) for source, call in calls]
    return found[0] if len(found) == 1 else None


_SWITCH = "checkpointing"


def _passed(scene: Scene) -> list[tuple[Source, ast.Call]]:
    """The checkpoint calls that the failing graph was made through; all where none is known."""
    every = list(scene.index.calls("checkpoint", "checkpoint_sequential", of="torch"))
    makers = (scene.history.maker(n) for n in scene.graph.nodes[:_MANY])
    lines = {p.line_id for m in makers if m is not None for p in m.path}
    places = ((x, x[0].place(x[1].lineno)) for x in every)
    return [x for x, p in places if p.line_id in lines] or every


def _local(source: Source, call: ast.Call, name: str) -> Definition | None:
    """The function of this name that the function around a call defines itself."""
    around = source.function_at(source.place(call.lineno))
    found = [
        node
        for node in (own_nodes(around) if around is not None else ())
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == name
    ]
    return Definition(source, found[0]) if len(found) == 1 else None


def _bodies(scene: Scene, source: Source, call: ast.Call) -> Iterator[Definition]:
    """The source of the function that is checkpointed: of a live object, else by its name."""
    given = next((a for a in call.args if not isinstance(a, ast.Starred)), None)
    if isinstance(given, ast.Lambda):
        yield Definition(source, given)
    if given is None:
        return
    own = _local(source, call, ast.unparse(given))
    if own is not None:
        yield own
        return
    value = scene.incident.namespace.get(ast.unparse(given))
    live = scene.index.definition(value)
    if isinstance(value, torch.nn.Module):
        yield from _forwards(scene, value)
    elif live is not None:
        yield live
    else:
        named = scene.index.functions(last_name(given))
        yield from named or _of_owner(scene, source, call, given)


def _forwards(scene: Scene, module: torch.nn.Module) -> Iterator[Definition]:
    found = (scene.index.method(type(m), "forward") for m in module.modules())
    yield from (m for m in found if m is not None)


def _of_owner(
    scene: Scene, source: Source, call: ast.Call, given: ast.expr
) -> Iterator[Definition]:
    """Those of `self.block`, and of `block` that a loop takes from `self.blocks`, where a live
    module's method checkpoints them."""
    method = source.function_at(source.place(call.lineno))
    live = (v for v in scene.incident.namespace.values() if is_a(v, torch.nn.Module))
    for owner in (m for root in live for m in root.modules()):
        own = None if method is None else scene.index.method(type(owner), method.name)
        if own is not None and method is not None and own.node is method:
            spot = ExprAt(scene.slicer.scope_of(source, method, owner), call)
            values = [scene.slicer.value(spot.inside(e)) for e in _shown(scene, spot, given)]
            for value in values:
                if isinstance(value, torch.nn.Module) and value is not owner:
                    yield from _forwards(scene, value)
            return


def _run_by(scene: Scene, body: Definition) -> Iterator[Definition]:
    """A function, and those of the user's that it calls by a name of which there is just one, or
    that is a module's."""
    pending, seen = [body], set[int]()
    while pending and len(seen) < _MANY:
        body = pending.pop(0)
        if id(body.node) in seen:
            continue
        seen.add(id(body.node))
        yield body
        names = {called_name(n) for n in own_nodes(body.node) if isinstance(n, ast.Call)}
        called = (scene.index.functions(name) for name in sorted(names) if name)
        pending += [found[0] for found in called if len(found) == 1]
        values = (scene.incident.namespace.get(name) for name in sorted(names))
        modules = (value for value in values if is_a(value, torch.nn.Module))
        pending += [forward for module in modules for forward in _forwards(scene, module)]


def _read(body: Definition) -> Iterator[str]:
    """The names and attributes whose values a function uses, not those that it only fills."""
    nodes = list(own_nodes(body.node))
    filled = {id(found) for n in nodes if (found := _filled(n)) is not None}
    named = (n for n in nodes if isinstance(n, (ast.Name, ast.Attribute)))
    used = (n for n in named if isinstance(n.ctx, ast.Load) and id(n) not in filled)
    yield from map(ast.unparse, used)


def _filled(node: ast.AST) -> ast.expr | None:
    """The container that this changes and takes nothing out of: `kept` of `kept["a"] = x` and of
    the statement `kept.append(x)`."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        return container_of(node)
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
        return None
    function = node.value.func
    if isinstance(function, ast.Attribute) and function.attr in _CHANGING:
        return container_of(function.value)
    return None


def _inside(body: Definition, read: set[str]) -> Iterator[Divergence]:
    """What one function does; values that it only leaves behind change no second run."""
    local = _local_names(body)
    shared = _declared_global(body)
    nodes = list(own_nodes(body.node))
    left = {n.value if isinstance(n, ast.Expr) else n for n in nodes if _only_leaves(n, read)}
    for node in nodes:
        kind = _kind(node, local - shared, shared)
        if kind and node not in left:
            yield Divergence(kind, body.name or "lambda", body.at(node))


def _only_leaves(statement: ast.AST, read: set[str]) -> bool:
    """Whether nothing that is read changes with a statement."""
    if isinstance(statement, ast.Assign):
        return not any(_is_used(t, read) for t in statement.targets)
    filled = _filled(statement) if isinstance(statement, ast.Expr) else None
    return filled is not None and not _is_used(filled, read)


def _is_used(target: ast.expr, read: set[str]) -> bool:
    target = container_of(target)
    if isinstance(target, (ast.Name, ast.Attribute)):
        return ast.unparse(target) in read
    parts: list[ast.expr] | None = getattr(target, "elts", None)
    return parts is None or any(_is_used(part, read) for part in parts)


def _kind(node: ast.AST, local: set[str], shared: set[str]) -> str:
    if isinstance(node, (ast.Assign, ast.AugAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return "state" if any(_outlives(t, local, shared) for t in targets) else ""
    if not isinstance(node, ast.Call):
        return ""
    function = ast.unparse(node.func)
    if function.startswith(_RANDOM):
        return "random"
    if function == "next" and node.args and head_name(node.args[0]) not in local:
        return "state"
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    outside = owner is not None and head_name(owner) not in local
    return "state" if outside and called_name(node) in _CHANGING else ""


def _outlives(target: ast.expr, local: set[str], shared: set[str]) -> bool:
    """Whether the assigned thing is there after the function has returned."""
    if isinstance(target, ast.Name):
        return target.id in shared
    if isinstance(target, (ast.Attribute, ast.Subscript)):
        return head_name(target) not in local or head_name(target) == "self"
    return any(_outlives(t, local, shared) for t in getattr(target, "elts", ()))


def _local_names(body: Definition) -> set[str]:
    """What the function itself binds, its parameters but `self` included."""
    names = set(parameters(body.node))
    stored = (n for n in own_nodes(body.node) if isinstance(n, ast.Name))
    names |= {n.id for n in stored if isinstance(n.ctx, ast.Store)}
    return names - {"self"}


def _declared_global(body: Definition) -> set[str]:
    kinds = (ast.Global, ast.Nonlocal)
    return {name for n in own_nodes(body.node) if isinstance(n, kinds) for name in n.names}


def _between(source: Source, call: ast.Call) -> Iterator[Divergence]:
    """A switch of the mode after the checkpoint and before the next backward of the cell."""
    given = ast.unparse(call.args[0]) if call.args else "checkpoint"
    later = [n for n in ast.walk(source.tree) if isinstance(n, ast.Call) and n.lineno > call.lineno]
    later.sort(key=lambda n: n.lineno)
    for node in later:
        if called_name(node) == "backward":
            return
        if called_name(node) in _MODES:
            yield Divergence("mode", given, source.place(node.lineno, None, node))


def modules_of(ran: object) -> Iterator[torch.nn.Module]:
    """The modules that a function is, is a method of, or has in its closure."""
    if is_a(ran, functools.partial):
        for value in (ran.func, *ran.args):
            yield from modules_of(value)
    elif is_a(ran, torch.nn.Module):
        yield ran
    elif type(ran) is MethodType:
        yield from modules_of(ran.__self__)
    elif type(ran) is FunctionType:
        for _, held in closed_over(ran):
            for value in held if type(held) in (list, tuple) else (held,):
                if is_a(value, torch.nn.Module):
                    yield value


def reentrant_calls(program: Program) -> list[tuple[Source, ast.Call]]:
    """The checkpoints that ask for the reentrant kind, by name or by saying nothing."""
    found = index_of(program).calls("checkpoint", "checkpoint_sequential", of="torch")
    return [(s, c) for s, c in found if not any(_is_off(k) for k in c.keywords)]


@dataclass(frozen=True, eq=False)
class UnrecordedCheckpoint:
    """The reentrant checkpoints behind a value that got no tensor that requires grad, those nearest
    to the inputs first; `read` are those tensors, `certain` tells that something inside the first
    is seen to be trained."""

    calls: tuple[ExprAt, ...]
    read: tuple[str, ...]
    certain: bool


def unrecorded(scene: Scene, loss: NoGraph) -> UnrecordedCheckpoint | None:
    """What of a loss without graph was computed in reentrant checkpoints, whose inputs cannot have
    required grad then; None where another cut is seen, or none that ran with something to train."""
    if loss.root is None or loss.trace.cuts or loss.recording_off:
        return None
    found = [s for s in computation(scene, loss.root) if _is_reentrant(scene, s)]
    found = [s for s in found if _ran(scene, s) is not False]
    if not found:
        return None
    first = found[-1]
    ran, trained = _ran(scene, first), _trained_inside(scene, first)
    if trained is None and ran:
        trained = any(n.tensor.is_leaf and n.tensor.requires_grad for n in scene.names.tensors)
        ran = None
    if not trained:
        return None
    read = tuple(g.text for s in reversed(found) for g in _given(s))
    return UnrecordedCheckpoint(tuple(reversed(found)), read, ran is True)


def _is_reentrant(scene: Scene, spot: ExprAt) -> bool:
    """A call of torch's checkpoint that asks for the reentrant kind, or leaves it to torch 2.13."""
    node = spot.node
    if not isinstance(node, ast.Call) or any(k.arg is None for k in node.keywords):
        return False
    slicer = scene.slicer
    function = slicer.value(spot.inside(node.func))
    asked = [slicer.value(spot.inside(k.value)) for k in node.keywords if k.arg == KIND]
    return is_reentrant(function, asked)


def is_reentrant(function: Any, asked: Sequence[Any] = ()) -> bool:
    """Whether a function is torch's checkpoint, of the reentrant kind where `asked` are the values
    that a call gives `use_reentrant`, or one whose options were given before."""
    if isinstance(function, functools.partial):
        asked = asked or [v for k, v in function.keywords.items() if k == KIND]
        function = function.func
    if getattr(function, "__module__", "") != "torch.utils.checkpoint":
        return False
    return all(a is True or a is None for a in asked)


KIND = "use_reentrant"
#: transformers' `PreTrainedModel.gradient_checkpointing_enable`, `activation_checkpointing_enable`.
_SWITCH = "checkpointing_enable"
_WORD = "reentrant"  #: in the name of a library's own switch, as timm's `set_reentrant_ckpt`


def asked_for(scene: Scene) -> Iterator[ExprAt]:
    """The `True` of `use_reentrant`, in a dict or as an argument; else the calls that switch
    checkpoints on without saying which kind."""
    said = [
        scene.slicer.at(source, value)
        for source, node in scene.index.nodes(ast.AST)
        for value in _options(node)
    ]
    yield from (spot for spot in said if getattr(spot.node, "value", None) is True)
    if not said:
        for source, call in scene.index.nodes(ast.Call):
            name = getattr(call.func, "attr", "")
            if name.endswith(_SWITCH) and not call.keywords:
                yield scene.slicer.at(source, call)


def _options(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        yield from (v for k, v in pairs if isinstance(k, ast.Constant) and k.value == KIND)
    if isinstance(node, ast.Call):
        yield from (k.value for k in node.keywords if k.arg == KIND)
        yield from node.args if len(node.args) == 1 and _WORD in called_name(node) else ()


def _given(spot: ExprAt) -> list[ExprAt]:
    """The arguments for the checkpointed function."""
    assert isinstance(spot.node, ast.Call)
    values = [*spot.node.args[1:], *(k.value for k in spot.node.keywords if k.arg != KIND)]
    return [spot.inside(v.value if isinstance(v, ast.Starred) else v) for v in values]


def _ran(scene: Scene, spot: ExprAt) -> bool | None:
    """Whether a call ran, as far as the `if`s around it tell: None where they do not."""
    slicer, child, sure = scene.slicer, cast(ast.AST, spot.node), True
    for around in slicer.index(spot.scope.source).ancestors(spot.node):
        if isinstance(around, ast.If) and child is not around.test:
            taken = _is_true(scene, spot, around.test)
            if taken is not None and taken is any(child is s for s in around.orelse):
                return False
            sure = sure and taken is not None
        child = around
    return True if sure else None


def _is_true(scene: Scene, spot: ExprAt, test: ast.expr) -> bool | None:
    """What `self.checkpointing and self.training` is, as far as live values tell."""
    parts = test.values if _is_and(test) else [test]
    values = [scene.slicer.value(spot.inside(p)) for p in parts]
    if any(v is False for v in values):
        return False
    return True if all(v is True for v in values) else None


def _is_and(node: ast.expr) -> TypeGuard[ast.BoolOp]:
    return isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And)


def _trained_inside(scene: Scene, spot: ExprAt) -> bool | None:
    """Whether the checkpointed module has parameters to train; None where it is not known."""
    assert isinstance(spot.node, ast.Call)
    given = spot.node.args[:1]
    called = [scene.slicer.value(spot.inside(s)) for g in given for s in _shown(scene, spot, g)]
    owners = (getattr(value, "__self__", value) for value in called)
    module = next((m for m in owners if isinstance(m, torch.nn.Module)), None)
    return None if module is None else any(p.requires_grad for p in module.parameters())


def is_frozen(scene: Scene) -> bool:
    """Whether the failing expression checkpoints a module that has nothing to train."""
    spot = scene.surfaced
    call = spot is not None and isinstance(spot.node, ast.Call) and bool(spot.node.args)
    return spot is not None and call and _trained_inside(scene, spot) is False


def read_by_failing(scene: Scene) -> tuple[str, ...]:
    """What the failing expression hands to the function that it checkpoints, and that function."""
    spot = scene.surfaced
    if spot is None or not isinstance(spot.node, ast.Call) or spot.called != "checkpoint":
        return ()
    return (*(g.text for g in _given(spot)), *(ast.unparse(f) for f in spot.node.args[:1]))


def _shown(scene: Scene, spot: ExprAt, function: ast.expr) -> Iterator[ast.expr]:
    """The expression of a function, and the list that a loop takes it from: `self.blocks` of
    `for i, block in enumerate(self.blocks)`."""
    yield function
    for around in scene.slicer.index(spot.scope.source).ancestors(spot.node):
        if isinstance(around, ast.For) and isinstance(function, ast.Name):
            if any(getattr(n, "id", "") == function.id for n in ast.walk(around.target)):
                yield from (n for n in ast.walk(around.iter) if isinstance(n, ast.expr))


def _is_off(keyword: ast.keyword) -> bool:
    value = keyword.value
    return keyword.arg == KIND and isinstance(value, ast.Constant) and value.value is False
