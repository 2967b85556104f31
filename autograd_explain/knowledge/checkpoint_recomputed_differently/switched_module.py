"""What the program switched on a module between its forward pass and the backward that runs a part
of it again: `unet.disable_adapters()`, `net.eval()`, `net.skip = True`."""

from __future__ import annotations

import ast
import dis
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from types import CodeType, FunctionType
from typing import Any

import torch

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.dataflow.calls import closed_over
from autograd_explain.inspect.dataflow.expression import Scope
from autograd_explain.inspect.dataflow.grad_mode import switched_off_around
from autograd_explain.inspect.dataflow.reaching_definitions import FUNCTIONS
from autograd_explain.inspect.facts.checkpointed import modules_of
from autograd_explain.inspect.facts.torch_call import local
from autograd_explain.inspect.scene import Scene
from autograd_explain.isolation.type_checks import class_attribute, is_a
from autograd_explain.program import blocks

_DEEP = 5  #: functions of the user's that call one another
_MOST = 2000
#: Methods that every module has and by which it computes something else.
_OF_TORCH = frozenset("train eval requires_grad_ to type half float double bfloat16".split())
_LOADS = ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR")


@dataclass(frozen=True, eq=False)
class Switched:
    """`at` is the call of a method, or the attribute that is set; `module` what it is one of;
    `sets` are the attributes that it sets and the second run reads; `backward` is what runs it."""

    at: ExprAt
    module: ExprAt
    sets: frozenset[str]
    backward: ExprAt


def switched_since_forward(scene: Scene) -> Switched | None:
    """The last such statement behind the recorded forward pass of the module that backward runs
    again, that nothing took back; None where that pass is not seen."""
    part, found, chain = _run_again(scene), list[Switched](), _to_backward(scene)
    for spot in islice(_ran_before(scene, chain), _MOST) if part is not None else ():
        called = None if spot.callable is None else scene.slicer.value(spot.callable)
        if _holds(called, part) and switched_off_around(scene.slicer, spot) is None:
            return next((s for s in found if _lasts(scene, s, found)), None)
        owner, sets = _switched(scene, spot, part)
        if owner is not None:  # in the place of what its own method does
            found = [s for s in found if not _is_inside(s.at, spot)]
            found.append(Switched(spot, owner, sets, chain[-1][0]))
    return None


def _run_again(scene: Scene) -> torch.nn.Module | None:
    """The module that checkpoint was running for the second time, as its own frame holds it."""
    frame = local(scene, "unpack_hook", "frame", "torch/utils/checkpoint.py")
    again = getattr(frame, "recompute_fn", None)
    run = dict(closed_over(again)).get("fn") if isinstance(again, FunctionType) else None
    return next(iter(modules_of(run)), None)


def _to_backward(scene: Scene) -> list[tuple[ExprAt, Scope]]:
    """The user's frames down to the one that called backward, without those of the second run."""
    frames, chain = scene.incident.frames, scene.slicer.frame_chain
    hook = next((i for i, live in enumerate(frames) if live.function == "unpack_hook"), 0)
    own = {id(live) for live in scene.incident.user_frames}
    count = sum(id(live) in own for live in frames[:hook])
    return chain[:count] if len(chain) == len(own) else []


def _holds(module: Any, part: Any) -> bool:
    return is_a(module, torch.nn.Module) and any(m is part for m in module.modules())


def _is_inside(spot: ExprAt, call: ExprAt) -> bool:
    """Whether a spot stands in a function that a call led to."""
    outer = spot.scope.call
    return outer is not None and (outer.node is call.node or _is_inside(outer, call))


def _lasts(scene: Scene, switched: Switched, found: list[Switched]) -> bool:
    """Whether no other statement sets the same, and may have taken it back."""
    same = (s for s in found if not s.sets.isdisjoint(switched.sets))
    statements = (scene.slicer.statement(s.at) for s in same)
    return len({ast.unparse(s) for s in statements if s is not None}) == 1


def _switched(scene: Scene, spot: ExprAt, part: Any) -> tuple[ExprAt | None, frozenset[str]]:
    """The module around the part or inside it on which a spot switches something, and what; a
    method whose result is used is not called for that."""
    if isinstance(spot.node, ast.Attribute):
        owner: ExprAt | None = spot.inside(spot.node.value)
    else:
        statement = scene.slicer.statement(spot)
        alone = isinstance(statement, ast.Expr) and statement.value is spot.node
        owner = spot.receiver if alone or spot.called in _OF_TORCH else None
    module: Any = None if owner is None else scene.slicer.value(owner)
    if owner is None or not (_holds(module, part) or _holds(part, module)):
        return None, frozenset()
    sets = _set_by(spot, {type(m) for m in module.modules()})
    if spot.called not in _OF_TORCH:
        codes = _methods({type(m) for m in part.modules()}, "forward")
        sets &= {read for code in codes for read in _attributes(code, _LOADS)}
    return owner if sets else None, frozenset(sets)


def _set_by(spot: ExprAt, kinds: set[type]) -> set[str]:
    """The attributes that a call of a method sets in objects of these classes, or a statement."""
    if isinstance(spot.node, ast.Attribute):
        return {spot.node.attr}
    if spot.called in _OF_TORCH:
        return {"training" if spot.called in ("train", "eval") else spot.called}
    codes = _methods(kinds, spot.called)
    return {stored for code in codes for stored in _attributes(code, ("STORE_ATTR",))}


def _methods(kinds: set[type], name: str) -> Iterator[CodeType]:
    """The code of a method of some classes, and of those methods and properties of theirs that it
    reads; none of torch's."""
    pending, seen, done = [name], {name}, set[CodeType]()
    while pending:
        name = pending.pop()
        for code in (c for kind in kinds if (c := _code(class_attribute(kind, name))) is not None):
            if code not in done:
                done.add(code)
                yield code
                new = {*_attributes(code, _LOADS)} - seen
                seen |= new
                pending += new


def _code(member: Any) -> CodeType | None:
    """Of a method, or of a property that is read; None of torch's."""
    function = member.fget if isinstance(member, property) else member
    function = inspect.unwrap(function) if isinstance(function, FunctionType) else None
    if not isinstance(function, FunctionType):
        return None
    module = str(function.__globals__.get("__name__", ""))
    return None if module.startswith("torch.") else function.__code__


def _attributes(code: CodeType, operations: tuple[str, ...]) -> Iterator[str]:
    """The attributes that a function reads, or sets."""
    for step in dis.get_instructions(code):
        if step.opname in operations and isinstance(step.argval, str):
            yield step.argval
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _attributes(inner, operations)


def _ran_before(scene: Scene, chain: list[tuple[ExprAt, Scope]]) -> Iterator[ExprAt]:
    """The calls that ran before the last one of a chain and the attributes that were set, the last
    first, as the source has them: whatever branch ran."""
    slicer = scene.slicer
    for spot, scope in reversed(chain):
        for node in (*reversed([*ast.iter_child_nodes(spot.node)]), *_earlier(scene, spot)):
            done = [*islice(_done(scene, scope, node), _MOST)]
            if len(done) == _MOST:
                return
            yield from reversed(done)
    runs = scene.index.runs
    first = chain[0][1].source if chain else None
    at = next((i for i, s in enumerate(runs) if s is first), 0)
    for source in reversed(runs[:at]):
        for node in reversed(source.tree.body):
            yield from reversed([*_done(scene, slicer.top(source), node)])


def _earlier(scene: Scene, spot: ExprAt) -> Iterator[ast.stmt]:
    """The statements above one in its function or cell, the nearest first."""
    child: ast.AST | None = scene.slicer.statement(spot)
    if child is None or isinstance(spot.scope.body, ast.Lambda):
        return
    for around in scene.slicer.index(spot.scope.source).ancestors(child):
        for block in blocks(around):
            at = next((i for i, s in enumerate(block) if s is child), 0)
            yield from reversed(block[:at])
        if around is spot.scope.body:
            return
        child = around


def _done(scene: Scene, scope: Scope, node: ast.AST, depth: int = 0) -> Iterator[ExprAt]:
    """The calls in a statement in the order in which they run, each before what it runs itself."""
    if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
        return
    for child in ast.iter_child_nodes(node):
        yield from _done(scene, scope, child, depth)
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        yield ExprAt(scope, node)
    if isinstance(node, ast.Call):
        spot = ExprAt(scope, node)
        yield spot
        inner = scene.slicer.callee(spot) if depth < _DEEP else None
        body = [] if inner is None else getattr(inner.body, "body", [])
        for child in body if isinstance(body, list) else [body]:
            if inner is not None:
                yield from _done(scene, inner, child, depth + 1)
