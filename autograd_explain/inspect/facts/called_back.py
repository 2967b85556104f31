"""What a library that failed had asked the user's code for: functions that it was given, methods of
objects of the user's classes.

Such a call has returned by the time of the failure, so that no frame of it is left.  The frames of
the library show what it holds, and its source which of that it calls on the way to what failed.
"""

from __future__ import annotations

import ast
import functools
import os
import re
import types
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch

from ...arguments import parameters
from ...incident import LiveFrame
from ...isolation.type_checks import bases, class_table, items, table_of
from ...program import Source, expression_of, is_installed, last_name, library_source
from ...program_index import functions_of
from ..dataflow import Cut, ExprAt, GradientTrace, Scope, best_cut
from ..dataflow.failing_expression import expression_at
from ..dataflow.reaching_definitions import FUNCTIONS
from ..dataflow.syntax import returns
from ..scene import Scene
from .expressions import computation

_MANY = 200  #: objects that a library's frames hold
_DEEP = 2  #: functions of the library that a value's way is followed through
_WORD = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, eq=False)
class CalledBack:
    """A function of the user's that a library holds, with what its results carry; `on_the_way`
    says that the library's source calls it for what failed."""

    entered: Scope
    trace: GradientTrace
    on_the_way: bool


def cut_in_callback(scene: Scene) -> tuple[GradientTrace, Cut] | None:
    """Where a value that the library got from the user's code had lost its gradient; None where
    nothing is found, or several functions of the user's may be the one."""
    found = list(_called_back(scene))
    near = [c for c in found if c.on_the_way]
    cutting = [c for c in near or found if not c.trace.carries and c.trace.cuts]
    if not near and any(c.trace.carries for c in found):
        return None
    cuts = {id(cut.spot.node): (c.trace, cut) for c in cutting if (cut := best_cut(c.trace.cuts))}
    return next(iter(cuts.values())) if len(cuts) == 1 else None


def returned_to_library(scene: Scene) -> ExprAt | None:
    """What the one function of the user's returned that a library called for what it then goes
    backward from: `loss` of `return {"loss": loss}`; None where several may be the one."""
    near = [c.entered for c in _called_back(scene) if c.on_the_way]
    given = [ExprAt(scope, _loss_of(node)) for scope in near for node in returns(scope.body)]
    return given[0] if len(given) == 1 else None


def _loss_of(node: ast.expr) -> ast.expr:
    """Of what a function returns: `loss` of `{"loss": loss}` and of
    `(loss, outputs) if return_outputs else loss`."""
    if isinstance(node, ast.IfExp):
        for both, alone in ((node.body, node.orelse), (node.orelse, node.body)):
            elements = both.elts if isinstance(both, ast.Tuple) else []
            if ast.unparse(alone) in map(ast.unparse, elements):
                return alone
    if not isinstance(node, ast.Dict):
        return node
    named = zip(node.keys, node.values, strict=True)
    return next((v for k, v in named if isinstance(k, ast.Constant) and k.value == "loss"), node)


def cuts_of_what_was_handed_in(scene: Scene) -> tuple[Cut, ...]:
    """The cuts between what a library hands to the user's code, differentiating for it, and what
    it gets back; () where several functions of the user's may have made them."""
    frames = [_LibraryFrame(f) for f in library_frames(scene)]
    if not any(f.leaves for f in frames):
        return ()
    found = [(c, cuts) for c in _called_back(scene) if (cuts := tuple(_of_parameters(scene, c)))]
    near = [cuts for c, cuts in found if c.on_the_way] or [cuts for _, cuts in found]
    return near[0] if len(near) == 1 else ()


def unrecorded_for_library(scene: Scene) -> tuple[Cut, ...]:
    """The cut that recording off in a function of the user's makes behind a module that the library
    holds and that is called there; `operand` is that call.  () where not one function does."""
    held = [value for f in library_frames(scene) for _, value in _LibraryFrame(f).held]
    modules = {id(value) for value in held if isinstance(value, torch.nn.Module)}
    found: dict[int, Cut] = {}
    for cut in (c for called in _called_back(scene) for c in called.trace.cuts if c.off):
        for spot in (cut.spot, *computation(scene, cut.spot)):
            owner = spot.callable if isinstance(spot.node, ast.Call) else None
            if owner is not None and id(scene.slicer.value(owner)) in modules:
                found.setdefault(id(cut.spot.node), replace(cut, operand=spot))
    return tuple(found.values()) if len(found) == 1 else ()


def _of_parameters(scene: Scene, called: CalledBack) -> Iterator[Cut]:
    """The cuts of what is computed from a function's arguments."""
    body = called.entered.body
    given = set(parameters(body)) - {"self"} if isinstance(body, FUNCTIONS) else set()
    for cut in called.trace.cuts:
        for spot in (cut.operand, *computation(scene, cut.operand)):
            own = spot.scope.body is body
            if own and isinstance(spot.node, ast.Name) and spot.node.id in given:
                yield cut
                break


def frozen_in_library(scene: Scene) -> tuple[ExprAt, ...]:
    """The modules that a library works with, under names of the program's, where none of their
    parameters is left to train."""
    held = [value for f in library_frames(scene) for _, value in _LibraryFrame(f).held]
    modules = {id(m): m for m in held if isinstance(m, torch.nn.Module)}
    flags = [p.requires_grad for m in modules.values() for p in m.parameters()]
    if not flags or any(flags) or scene.surfaced is None:
        return ()
    named = [n for n, m in scene.names.objects if id(m) in modules]
    nodes = (expression_of(name) for name in named)
    return tuple(scene.slicer.imagined(scene.surfaced, node) for node in nodes if node is not None)


def names_on_the_way(scene: Scene) -> set[str]:
    """The names that what failed came through in the library, those it calls among them."""
    return _words_on_the_way([_LibraryFrame(f) for f in library_frames(scene)])


def _called_back(scene: Scene) -> Iterator[CalledBack]:
    frames = [_LibraryFrame(f) for f in library_frames(scene)]
    leaf = next((t for f in frames for t in f.leaves), None)
    near = _words_on_the_way(frames)
    words = {w for f in frames for w in _WORD.findall(f.source.text)}
    seen = set()
    for name, function in _functions(scene, frames):
        entered = scene.slicer.entry(function)
        known = name in words or name == "forward"
        if entered is None or not known or id(entered.body) in seen:
            continue
        seen.add(id(entered.body))
        entered = _given(entered, leaf, frames)
        yield CalledBack(entered, _trace(scene, entered), name in near)


def library_frames(scene: Scene) -> list[LiveFrame]:
    """Those of installed packages behind the last frame of the user's, outermost first."""
    frames, own = scene.incident.frames, {id(f) for f in scene.incident.user_frames}
    last = max((i for i, f in enumerate(frames) if id(f) in own), default=len(frames))
    found = [f for f in frames[last + 1 :] if is_installed(f.filename)]
    return [f for f in found if not f.filename.startswith(_TORCH)]


@dataclass(frozen=True)
class _LibraryFrame:
    live: LiveFrame

    @property
    def source(self) -> Source:
        return library_source(self.live.filename)

    @property
    def leaves(self) -> list[torch.Tensor]:
        """What it differentiates for, as far as a local name holds it, by itself or with others."""
        values = self.live.frame.f_locals.values()
        held = [e for v in values for e in (v if type(v) in (tuple, list) else (v,))[:_MANY]]
        return [v for v in held if isinstance(v, torch.Tensor) and v.is_leaf and v.requires_grad]

    @property
    def held(self) -> Iterator[tuple[str, Any]]:
        """Its locals, and what these hold as attributes."""
        for name, value in items(self.live.frame.f_locals):
            yield name, value
            yield from items(table_of(value))

    @property
    def functions(self) -> Iterator[tuple[str, str]]:
        """The functions that it holds, with their own names: `step` for a `self._fn`."""
        for name, value in self.held:
            inner = value.func if type(value) is functools.partial else value
            if isinstance(inner, (types.FunctionType, types.MethodType)):
                yield name, inner.__name__

    @cached_property
    def words(self) -> set[str]:
        """The names that the failing call's value came through in this function."""
        call = expression_at(self.source, self.live)
        body = next(iter(functions_of(self.source.tree, self.live.code)), None)
        found = set() if call is None else _words(call)
        given = [n for n in ast.walk(body or self.source.tree) if isinstance(n, ast.Assign)]
        while True:
            before = len(found)
            for statement in given:
                if any(_words(target) & found for target in statement.targets):
                    found |= _words(statement.value)
            if len(found) == before:
                return found


def _words(node: ast.AST) -> set[str]:
    """The names in it, those that it spells as texts too: `call(trainer, "training_step")`."""
    texts = (n.value for n in ast.walk(node) if isinstance(n, ast.Constant))
    named = {t for t in texts if isinstance(t, str) and t.isidentifier()}
    return named.union(last_name(n) for n in ast.walk(node)) - {"", "self"}


def _words_on_the_way(frames: list[_LibraryFrame]) -> set[str]:
    """The names that what failed came through, functions of the same files included."""
    found = {word for f in frames for word in f.words}
    found |= {called for f in frames for name, called in f.functions if name in found}
    bodies = {
        node.name: _words(node)
        for source in {f.live.filename: f.source for f in frames}.values()
        for node in source.nodes
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    }
    running = {f.live.function for f in frames}
    for _ in range(_DEEP):
        inner = [bodies[w] for w in found if w in bodies and w not in running]
        found = found.union(*inner)
    return found


def _functions(scene: Scene, frames: list[_LibraryFrame]) -> Iterator[tuple[str, Any]]:
    """The user's functions that the library holds, and the methods of the user's objects."""
    seen: set[int] = set()
    for frame in reversed(frames):
        for name, value in frame.held:
            if id(value) in seen or len(seen) > _MANY:
                continue
            seen.add(id(value))
            if isinstance(value, (types.FunctionType, types.MethodType)):
                yield name, value
            elif not isinstance(value, (type, types.ModuleType)):
                yield from _methods(scene, name, value)


def _methods(scene: Scene, name: str, owner: Any) -> Iterator[tuple[str, Any]]:
    for kind in bases(type(owner)):
        for method, function in [*class_table(kind).items()]:
            wrapped = getattr(function, "__wrapped__", function)
            if isinstance(function, types.FunctionType) and isinstance(wrapped, types.FunctionType):
                if scene.program.source_of(wrapped.__code__) is not None:
                    called = name if method == "__call__" else method
                    yield called, types.MethodType(function, owner)


def _given(entered: Scope, leaf: torch.Tensor | None, frames: list[_LibraryFrame]) -> Scope:
    """The function with what the library may hand to it: something that carries gradient, where
    the library differentiates for a tensor of its own, and the modules that the library itself
    calls by the names of the function's parameters."""
    if not isinstance(entered.body, FUNCTIONS):
        return entered
    names = [n for n in parameters(entered.body) if n not in entered.values]
    held = {n: v for f in frames for n, v in f.live.frame.f_locals.items() if n in names}
    modules = {n: v for n, v in held.items() if isinstance(v, torch.nn.Module)}
    leaves = {} if leaf is None else dict.fromkeys(names, leaf)
    return replace(entered, given={**leaves, **modules}, values={**entered.values, **modules})


def _trace(scene: Scene, entered: Scope) -> GradientTrace:
    """What the function's results carry, all of them together."""
    given = [ExprAt(entered, _loss_of(node)) for node in returns(entered.body)]
    traces = [scene.gradient_tracer.trace(spot) for spot in given]
    cuts = tuple(cut for trace in traces for cut in trace.cuts)
    frozen = tuple(spot for trace in traces for spot in trace.frozen)
    return GradientTrace(any(t.carries for t in traces), cuts, frozen=frozen)


def library_asked(scene: Scene) -> LiveFrame | None:
    """The frame of a library that asked for the gradient, the user having called the library."""
    return next(reversed(library_frames(scene)), None)


def asked_by_library(scene: Scene) -> str:
    """What a library calls the value whose gradient it asked for, as the traceback shows it."""
    asking = library_asked(scene)
    if asking is None:
        return ""
    source = _LibraryFrame(asking).source
    call = expression_at(source, asking)
    if not isinstance(call, ast.Call):
        return ""
    method = isinstance(call.func, ast.Attribute) and call.func.attr == "backward"
    receiver = call.func.value if method and isinstance(call.func, ast.Attribute) else None
    asked = receiver or next(iter(call.args), None)
    return "" if asked is None else " ".join((source.segment(asked) or "").split())


_TORCH = os.path.join(os.path.dirname(torch.__file__), "")
