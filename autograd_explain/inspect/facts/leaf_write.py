"""The leaf tensor that a failing in-place statement tried to write, and why the user writes it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import torch

from ...forward_flow import bound
from ...incident import LiveFrame
from ...isolation.type_checks import table_of
from ...model import Certainty, Confidence, Event, Finding, Place, Role, TensorFact, What, label
from ...program import own_nodes
from ..dataflow.safe_lookup import MISSING, in_frame
from ..scene import Scene
from .pending_backward import PendingBackward, pending_backward
from .rebinding import hands_back, value_goes_on
from .statements import (
    Form,
    SourceWrite,
    base_of,
    in_place_op,
    write_of,
    written_tensor,
)


class Purpose(Enum):
    """What the leaf was written for; also the variant of the texts."""

    UPDATE = "update"  #: of a parameter
    INIT = "init"  #: of its values
    INDEX = "index"  #: of a part of a value
    ARITHMETIC = "arithmetic"  #: on a value
    MODULE = "module"  #: an in-place module computes with it


@dataclass(frozen=True, eq=False)
class LeafWrite:
    """A refused write: `leaf` is None where the written expression cannot be read without
    running code (then `tensor_names` still holds it as spelled).  `module` is the in-place module,
    or what a library defines, that wrote it, as the statement calls it; `goes_on`: the result of
    the function, or the loss of a round, is computed from what was written."""

    write: SourceWrite
    frame: LiveFrame
    leaf: torch.Tensor | None
    tensor_names: tuple[str, ...]
    module: str = ""
    goes_on: bool = False
    held: bool = False  #: what is written is an object that the leaf was given to

    @property
    def purpose(self) -> Purpose:
        used = self.write.form is Form.CALL and not isinstance(self.write.statement, ast.Expr)
        if used or self.write.is_part or self.held:  # the result goes on being used
            return Purpose.MODULE if self.module else Purpose.ARITHMETIC
        if self._reads_grad or (self._has_grad and not self.goes_on):
            return Purpose.UPDATE
        held = isinstance(self.leaf, torch.nn.Parameter) and not self.goes_on
        if held or self.write.form is Form.INIT:
            return Purpose.INIT
        return Purpose.INDEX if self.write.form is Form.ITEM else Purpose.ARITHMETIC

    @property
    def sets_values(self) -> bool:
        """Whether it gives a parameter numbers that belong to no graph."""
        return self.purpose in (Purpose.INIT, Purpose.UPDATE) and not _carried(self)

    @property
    def _reads_grad(self) -> bool:
        nodes = ast.walk(self.write.statement)
        return any(isinstance(n, ast.Attribute) and n.attr == "grad" for n in nodes)

    @property
    def _has_grad(self) -> bool:
        """A gradient is there already: backward ran, so this statement follows it."""
        return self.leaf is not None and self.leaf.is_leaf and self.leaf.grad is not None


def find_leaf_write(scene: Scene) -> LeafWrite | None:
    """The refused write at the innermost user line, or None where no write is spelled there."""
    frames = scene.incident.user_frames
    if not frames:
        return None
    statement = scene.program.statement_at(scene.place)
    write = None if statement is None else write_of(statement)
    if write is None:
        if statement is None:
            return None
        return _by_module(scene, statement, frames[-1]) or _by_library(scene, statement, frames[-1])
    write, value = written_tensor(write, frames[-1])
    return _found(scene, write, _handed_on(scene, write.target) if value is MISSING else value)


def _found(scene: Scene, write: SourceWrite, value: Any, module: str = "") -> LeafWrite:
    leaf, frame = _leaf_of(value), scene.incident.user_frames[-1]
    names = (*_live_names(scene, leaf), write.target_text, *_outer_names(scene))
    on = scene.place is not None and value_goes_on(scene.program, scene.place, write.target)
    on = on and not _is_set_up(scene, leaf, write.target)
    return LeafWrite(write, frame, leaf, tuple(dict.fromkeys(names)), module, on)


def _is_set_up(scene: Scene, leaf: torch.Tensor | None, target: ast.expr) -> bool:
    """Whether a cell calls, in no loop, a function that writes to a parameter and hands back this
    itself, and computes nothing of it: what holds the parameter is to have the new values."""
    outer, place = scene.incident.user_frames[:-1], scene.place
    if place is None or len(outer) != 1 or not isinstance(leaf, torch.nn.Parameter):
        return False
    called = scene.incident.place_of(outer[0])
    source, statement = scene.program.source_at(called), scene.program.statement_at(called)
    if called is None or called.function is not None or source is None or statement is None:
        return False
    if any(isinstance(node, (ast.For, ast.While)) for node in source.around(statement)):
        return False
    given = set(bound(statement))
    names = (n for n in own_nodes(source.tree) if isinstance(n, ast.Name))
    used = not given or any(n.id in given and isinstance(n.ctx, ast.Load) for n in names)
    return not used and hands_back(scene.program, place, target)


def _by_module(scene: Scene, statement: ast.stmt, frame: LiveFrame) -> LeafWrite | None:
    """The write of a module that works in place, or that such a one is part of."""
    for live in reversed(scene.incident.frames):
        module = live.frame.f_locals.get("self")
        if isinstance(module, torch.nn.Module) and getattr(module, "inplace", False) is True:
            given = live.frame.f_locals.get("input")
            ran = [f.frame.f_locals.get("self") for f in scene.incident.frames]
            call = _call_with(statement, frame, given, ran)
            if call is None:
                return None
            write = SourceWrite(Form.CALL, statement, call.args[0], in_place_op(module))
            return _found(scene, write, given, ast.unparse(call.func))
    return None


def _by_library(scene: Scene, statement: ast.stmt, frame: LiveFrame) -> LeafWrite | None:
    """The write of library code that the statement hands the leaf to, or to whose object it was
    handed before: the one leaf that the frame which raised holds."""
    live = scene.incident.frames[-1]
    own = live.frame.f_locals.get("self")
    values = (*live.frame.f_locals.values(), *table_of(own).values())
    held = {id(t): t for v in values if _is_refused(t := _leaf_of(v))}
    given = next(iter(held.values()), None)
    if live is frame or len(held) != 1 or given is None:
        return None
    for call in (n for n in ast.walk(statement) if isinstance(n, ast.Call)):
        holder = call.func.value if isinstance(call.func, ast.Attribute) else None
        handed = [*call.args, *(k.value for k in call.keywords if k.arg is not None)]
        for node, value in (*((n, given) for n in handed), (holder, own)):
            if node is not None and in_frame(node, frame.frame) is value:
                write = SourceWrite(Form.CALL, statement, node, "")
                found = _found(scene, write, given, ast.unparse(call.func))
                return replace(found, held=value is own)
    return None


def _call_with(
    statement: ast.stmt, frame: LiveFrame, given: Any, ran: Sequence[Any]
) -> ast.Call | None:
    """The call of one of the modules that ran, with this tensor, or with what cannot be told
    without running code."""
    calls = [c for c in _module_calls(statement, frame) if len(c.args) == 1 and not c.keywords]
    calls = [c for c in calls if any(in_frame(c.func, frame.frame) is module for module in ran)]
    found = [c for c in calls if in_frame(c.args[0], frame.frame) is given] or calls
    return found[0] if len(found) == 1 else None


def _module_calls(node: ast.AST, frame: LiveFrame) -> Iterator[ast.Call]:
    """The calls of live modules in a piece of source."""
    for call in ast.walk(node):
        if isinstance(call, ast.Call):
            if isinstance(in_frame(call.func, frame.frame), torch.nn.Module):
                yield call


def _handed_on(scene: Scene, target: ast.expr) -> Any:
    """The live tensor that a property only hands on: `return self.blocks[self.layer].weight`."""
    spot = scene.surfaced
    if spot is None or not isinstance(target, ast.Attribute):
        return MISSING
    slicer = scene.slicer
    makers = slicer.makers(spot.inside(target))
    return slicer.value(makers[0]) if len(makers) == 1 else MISSING


def _leaf_of(value: Any) -> torch.Tensor | None:
    """The leaf itself, or the leaf that a view looks at."""
    if not isinstance(value, torch.Tensor):
        return None
    base = value._base if value._is_view() else None
    return base if base is not None else value


def _live_names(scene: Scene, leaf: torch.Tensor | None) -> tuple[str, ...]:
    return () if leaf is None else scene.names.of(leaf)


def _outer_names(scene: Scene) -> Iterator[str]:
    """What the calling lines assign to: with a property setter the user wrote `sigma.value = 1`."""
    for live in reversed(scene.incident.user_frames[:-1]):
        statement = scene.program.statement_at(scene.incident.place_of(live))
        if isinstance(statement, ast.Assign):
            # Only these call a setter; a plain name gets what the call returns.
            called = (t for t in statement.targets if isinstance(t, (ast.Attribute, ast.Subscript)))
            yield from (ast.unparse(base_of(t)) for t in called)
        elif isinstance(statement, ast.AugAssign):
            yield ast.unparse(base_of(statement.target))


@dataclass(frozen=True)
class LeafWriteDetails:
    """What the rewrites go by; `calls` are those of the module with a leaf that requires grad,
    `pending` is the backward that the write would spoil.  `carries`: what is written has a gradient
    to pass on, which a write that is not recorded would lose; `computed`: that of an operation, so
    that it is no other parameter's numbers which are copied."""

    purpose: Purpose
    module: str
    calls: tuple[Place, ...]
    pending: PendingBackward | None = None
    carries: bool = False
    computed: bool = False
    goes_on: bool = False
    holder: str = ""  #: the object that was given the leaf and writes to it


def leaf_finding(scene: Scene, found: LeafWrite, cause: str) -> Finding[LeafWriteDetails]:
    """The finding of a cause that is this write."""
    leaf, place = found.leaf, scene.place
    pending = pending_backward(scene, leaf)
    proven = leaf is not None and leaf.is_leaf and leaf.requires_grad
    return Finding(
        cause=cause,
        confidence=Confidence.PROVEN if proven else Confidence.LIKELY,
        facts={
            "tensor": found.tensor_names[0],
            "write": place.source if place is not None else "",
            "place": label(place),
            "module": found.module,
            "backward": pending.backward.source if pending else "",
            "last": pending.last.source if pending else "",
        },
        tensors=(_leaf_fact(scene, found),),
        events=_refused(scene, found),
        variant=_variant(found, pending),
        details=LeafWriteDetails(
            found.purpose,
            found.module,
            tuple(_alike(scene, found)) if found.purpose is Purpose.MODULE else (),
            pending,
            bool(_carried(found)),
            any(not t.is_leaf for t in _carried(found)),
            found.goes_on,
            found.write.target_text if found.held else "",
        ),
    )


def _variant(found: LeafWrite, pending: PendingBackward | None) -> str:
    """What a backward still to come needs has been used: that is no starting value, and no update
    that follows it."""
    module = found.purpose is Purpose.MODULE
    return found.purpose.value if pending is None or module else Purpose.ARITHMETIC.value


def _carried(found: LeafWrite) -> list[torch.Tensor]:
    """The tensors with a gradient that the statement reads beside the one that it writes to."""
    target = {id(n) for n in ast.walk(found.write.target)}
    nodes = (n for n in ast.walk(found.write.statement) if id(n) not in target)
    values = (in_frame(n, found.frame.frame) for n in nodes if isinstance(n, ast.expr))
    tensors = [v for v in values if isinstance(v, torch.Tensor) and v.requires_grad]
    return [v for v in tensors if _leaf_of(v) is not found.leaf]


def _alike(scene: Scene, found: LeafWrite) -> Iterator[Place]:
    """Where the failing function calls the module with a leaf that requires grad."""
    source = None if scene.place is None else scene.program.source_at(scene.place)
    if source is None or scene.place is None:
        return
    around = source.function_at(scene.place) or source.tree
    for call in _module_calls(around, found.frame):
        given = _leaf_of(in_frame(call.args[0], found.frame.frame)) if call.args else None
        if ast.unparse(call.func) == found.module and call.args:
            if call.args[0] is found.write.target or (given is not None and _is_refused(given)):
                yield source.place(call.lineno, scene.place.function, call)


def _is_refused(tensor: torch.Tensor | None) -> bool:
    return tensor is not None and tensor.is_leaf and tensor.requires_grad


def _leaf_fact(scene: Scene, found: LeafWrite) -> TensorFact:
    if found.leaf is None:
        return TensorFact(Role.CULPRIT, found.tensor_names, is_leaf=True, requires_grad=True)
    fact = scene.fact(Role.CULPRIT, found.leaf)
    return TensorFact(**{**vars(fact), "names": found.tensor_names})


def _refused(scene: Scene, found: LeafWrite) -> tuple[Event, ...]:
    """The write is where torch raised, so it was observed; the calling lines lead to it."""
    frames = scene.incident.user_frames[:-1]
    places = tuple(p for p in map(scene.incident.place_of, frames) if p is not None)
    op = found.write.op or None
    changed = Event(What.CHANGED, scene.place, op, certainty=Certainty.OBSERVED, chain=places)
    return (changed, scene.failed())
