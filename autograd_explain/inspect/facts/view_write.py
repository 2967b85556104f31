"""The view that a refused in-place operation tried to write, and the expression that made it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import FunctionType
from typing import Any

import torch
from torch.utils.hooks import BackwardHook

from ...isolation.type_checks import is_a
from ...model import Certainty, Event, Role, TensorFact, What
from ..dataflow import Each, ExprAt, Off
from ..dataflow.calls import closed_over
from ..dataflow.grad_mode import switched_off_around
from ..dataflow.reaching_definitions import constant_of
from ..live.names import shares_memory
from ..live.shapes import shape_of
from ..scene import Scene
from .base_write import MAKES_PARTS
from .statements import SourceWrite, base_of, in_place_op, write_of
from .value_names import outer_names


@dataclass(frozen=True, eq=False)
class ViewWrite:
    """`written` is the user's expression for the view, `maker` what made it a view (with the part
    of its result that is meant), `module` the in-place module called, as spelled."""

    written: ExprAt | None
    tensor: torch.Tensor | None
    maker: ExprAt | None
    op: str
    module: str = ""


def find(scene: Scene) -> ViewWrite | None:
    """The write at the innermost user line."""
    at = scene.surfaced
    if at is None:
        return None
    written, op, module = _written(scene, at)
    tensor = _tensor(scene, written)
    maker = None if written is None else view_maker(scene, written)
    if written is None:
        return _inside_library(scene)
    return ViewWrite(written, tensor, maker, op, module)


def written_expression(scene: Scene, at: ExprAt) -> ExprAt | None:
    """What the statement at the spot writes into."""
    return _written(scene, at)[0]


def _inside_library(scene: Scene) -> ViewWrite | None:
    """An in-place module that another module called (`nn.Sequential`)."""
    for live in reversed(scene.incident.frames):
        module = live.frame.f_locals.get("self")
        if isinstance(module, torch.nn.Module) and getattr(module, "inplace", False) is True:
            given = live.frame.f_locals.get("input")
            tensor = given if isinstance(given, torch.Tensor) else None
            name = _module_name(scene, module)
            return ViewWrite(None, tensor, None, in_place_op(module), name)
    return None


def _module_name(scene: Scene, wanted: torch.nn.Module) -> str:
    return next((name for name, module in modules(scene) if module is wanted), "")


def modules(scene: Scene) -> Iterator[tuple[str, torch.nn.Module]]:
    """The modules that live names reach: `net[1]`, `model.features[3]`, `explainer.net`."""
    for name, value in scene.names.objects:
        if isinstance(value, torch.nn.Module):
            for path, module in value.named_modules():
                parts = [f"[{p}]" if p.isdigit() else f".{p}" for p in path.split(".") if p]
                yield name + "".join(parts), module
    yield from scene.names.held_modules


def hooked(scene: Scene) -> list[str]:
    """What live names call the module whose full backward hook made the view that a library tried
    to write; [] where that is not seen, or several may be meant."""
    for live in reversed(scene.incident.frames):
        values = live.frame.f_locals.values()
        views = [v for v in values if is_a(v, torch.Tensor) and v.requires_grad and v._is_view()]
        if views and not scene.program.is_user_code(live.filename):
            made = {id(module) for view in views for module in _hooked_behind(view)}
            named = [name for name, module in modules(scene) if {id(module)} == made]
            return list(dict.fromkeys(named))
    return []


def _hooked_behind(view: torch.Tensor) -> Iterator[torch.nn.Module]:
    """The module at whose border torch made a view, for a full backward hook: what watches the
    gradient there holds it."""
    node: Any = view.grad_fn
    if node is None or node.name() != "BackwardHookFunctionBackward":
        return
    with node.register_hook(lambda *gradients: None) as handle:
        watching = [*(handle.hooks_dict_ref() or {}).values()]
    for hook in watching:
        holds = closed_over(hook) if is_a(hook, FunctionType) else ()
        yield from (held.module for _, held in holds if is_a(held, BackwardHook))


def _written(scene: Scene, at: ExprAt) -> tuple[ExprAt | None, str, str]:
    """The written expression, the operation, and the in-place module's callee."""
    module = _module_call(scene, at)
    if module is not None:
        return (
            at.inside(module.args[0]),
            _in_place_name(scene, at, module),
            ast.unparse(module.func),
        )
    statement = scene.slicer.statement(at)
    write = None if statement is None else write_of(statement)
    if write is None:
        return None, "", ""
    exact = _exact_target(write)
    base = at.inside(base_of(write.target))
    # `parts[0].mul_(2)` writes an element of a tuple, `x[0] = 1` a part of a tensor.
    holder = scene.slicer.value(base)
    in_container = isinstance(holder, (list, tuple, dict)) or not isinstance(holder, torch.Tensor)
    return (at.inside(exact) if in_container else base), write.op, ""


def _exact_target(write: SourceWrite) -> ast.expr:
    if isinstance(write.statement, ast.AugAssign):
        return write.statement.target
    for node in ast.walk(write.statement):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr == write.op:
                return node.func.value
    return base_of(write.target)


def _module_call(scene: Scene, at: ExprAt) -> ast.Call | None:
    """A call of a live module that works in place, in the failing expression."""
    for node in ast.walk(at.node):
        if isinstance(node, ast.Call) and node.args:
            value = scene.slicer.value(at.inside(node.func))
            if isinstance(value, torch.nn.Module) and getattr(value, "inplace", False) is True:
                return node
    return None


def _in_place_name(scene: Scene, at: ExprAt, call: ast.Call) -> str:
    return in_place_op(scene.slicer.value(at.inside(call.func)))


def _tensor(scene: Scene, written: ExprAt | None) -> torch.Tensor | None:
    """The live view: what the expression names, or what the library frames were given."""
    value = None if written is None else scene.slicer.value(written)
    if isinstance(value, torch.Tensor):
        return value
    for live in reversed(scene.incident.frames):
        if not scene.program.is_user_code(live.filename):
            found = live.frame.f_locals.get("input")
            if isinstance(found, torch.Tensor):
                return found
    return None


def view_maker(scene: Scene, written: ExprAt) -> ExprAt | None:
    """What made an expression's value a view, the statement that writes it left out."""
    loop = _loop(scene, written)
    if loop is not None:
        return loop
    slicer = scene.slicer
    statement = slicer.statement(written)
    makers = slicer.makers(written)
    if isinstance(written.node, ast.Subscript) and all(m.node is statement for m in makers):
        part = constant_of(written.node.slice)  # in a loop the write itself seems to have made it
        path = (Each.VALUE if part is None else part,)
        makers = slicer.makers(ExprAt(written.scope, written.node.value, path))
    return next((m for m in makers if m.node is not statement), None)


def in_tuple(scene: Scene, found: ViewWrite) -> bool:
    """Whether the view is an item of a live tuple, which takes no other."""
    node = None if found.written is None else found.written.node
    if found.written is None or not isinstance(node, ast.Subscript):
        return False
    return isinstance(scene.slicer.value(found.written.inside(node.value)), tuple)


def _loop(scene: Scene, written: ExprAt) -> ExprAt | None:
    """What a `for` statement iterates over, where it binds the written name: iterating over a
    tensor unbinds it."""
    for scope, binding in scene.slicer.bindings(written, written.text):
        if isinstance(binding.statement, (ast.For, ast.AsyncFor)) and binding.value is not None:
            over = _iterated(ExprAt(scope, binding.value, binding.path))
            value = scene.slicer.value(ExprAt(over.scope, over.node))
            makers = scene.slicer.makers(ExprAt(over.scope, over.node))
            listed = isinstance(value, (list, tuple)) or any(m.path for m in makers)
            return None if listed else over
    return None


def _iterated(spot: ExprAt) -> ExprAt:
    """`x` of `enumerate(x)` and of `zip(x, y)`, as far as the path says which."""
    node, path = spot.node, spot.path
    name = getattr(getattr(node, "func", None), "id", "") if isinstance(node, ast.Call) else ""
    if isinstance(node, ast.Call) and name == "enumerate" and path[1:2] == (1,) and node.args:
        return _iterated(ExprAt(spot.scope, node.args[0], (Each.ITEM, *path[2:])))
    if isinstance(node, ast.Call) and name == "zip" and len(path) > 1 and isinstance(path[1], int):
        if path[1] < len(node.args):
            return _iterated(ExprAt(spot.scope, node.args[path[1]], (Each.ITEM, *path[2:])))
    return spot


def fact(scene: Scene, found: ViewWrite) -> TensorFact:
    """The view, as the failing line and the live names call it."""
    names = list(names_of(scene, found))
    if found.tensor is None:
        return TensorFact(Role.CULPRIT, tuple(names))
    # Asking a view for its history now would raise the same error again.
    return TensorFact(
        role=Role.CULPRIT,
        names=tuple(dict.fromkeys((*names, *scene.names.of(found.tensor)))),
        shape=shape_of(found.tensor),
        dtype=str(found.tensor.dtype).removeprefix("torch."),
        device=str(found.tensor.device),
        requires_grad=found.tensor.requires_grad,
        current_version=found.tensor._version,
    )


def names_of(scene: Scene, found: ViewWrite) -> Iterator[str]:
    if found.written is not None:
        yield found.written.text
        yield from outer_names(scene, found.written)
    elif found.module:
        yield found.module
    if found.maker is not None:
        yield from (s.text for s in reversed(found.maker.via))
    if found.tensor is not None:
        yield from (n.name for n in scene.names.tensors if n.tensor is found.tensor)
    base = base_expression(scene, found) if _is_unnamed(found.written) else None
    looked_into = None if base is None else scene.slicer.value(base)
    yield from scene.names.of(looked_into) if isinstance(looked_into, torch.Tensor) else ()


def _is_unnamed(written: ExprAt | None) -> bool:
    """Whether a call gives the view where it is written: what it looks into has a name alone."""
    return written is not None and any(isinstance(n, ast.Call) for n in ast.walk(written.node))


def base_names(scene: Scene, found: ViewWrite) -> tuple[str, ...]:
    """What the user calls the tensor that the view looks into."""
    names: list[str] = []
    base = base_expression(scene, found)
    if base is not None:
        names.append(base.text)
    if found.tensor is not None:
        same = [n for n in scene.names.tensors if shares_memory(n.tensor, found.tensor)]
        names += [n.name for n in same if n.tensor.numel() > found.tensor.numel()]
    return tuple(dict.fromkeys(names))


def base_expression(scene: Scene, found: ViewWrite) -> ExprAt | None:
    """`x` of `torch.split(x, 2)`, `x.chunk(2)`, `x.unbind()`, `for row in x`."""
    maker = found.maker
    if maker is None:
        return None
    if isinstance(maker.node, ast.Call):
        operands = scene.slicer.operands(maker)
        return operands[0] if operands else None
    if maker.path and maker.path[0] is Each.ITEM:
        return maker
    return maker.inside(maker.node.value) if isinstance(maker.node, ast.Subscript) else None


def made_unrecorded(scene: Scene, found: ViewWrite) -> tuple[ViewWrite, Off | None]:
    """The view with, as its maker, what made it or a view behind it (`self.window` of
    `self.window[:, -1]`) while gradients were off, and what had turned them off."""
    at = found
    for _ in range(_VIEWS_OF_VIEWS):
        off = None if at.maker is None else switched_off_around(scene.slicer, at.maker)
        if off is not None:
            return at, off
        base = _looked_into(scene, at)
        makers = [] if base is None else scene.slicer.makers(base)
        if at.maker is None or len(makers) != 1 or makers[0].node is at.maker.node:
            break
        at = replace(at, maker=replace(makers[0], via=(*makers[0].via, *at.maker.via)))
    return found, None


def made_together(scene: Scene, found: ViewWrite) -> ViewWrite:
    """The view with, as its maker, what made several views at once: for a view of one of them
    (`a.view(-1)` of `a, b = x.chunk(2)`) that is further back, and unknown where not seen."""
    at = found
    for _ in range(_VIEWS_OF_VIEWS):
        maker = at.maker
        if maker is None or maker.path or maker.called in MAKES_PARTS:
            return at
        base = _looked_into(scene, at)
        makers = [] if base is None else scene.slicer.makers(base)
        at = replace(at, maker=makers[0] if len(makers) == 1 else None)
    return replace(found, maker=None)


_VIEWS_OF_VIEWS = 6


def _looked_into(scene: Scene, found: ViewWrite) -> ExprAt | None:
    """What a view was taken of, `x` of `x.T` and `x.view(-1)` included."""
    node = None if found.maker is None else found.maker.node
    if found.maker is not None and isinstance(node, ast.Attribute):
        return found.maker.inside(node.value)
    return base_expression(scene, found)


def changed(scene: Scene, found: ViewWrite) -> Event:
    """The write is where torch raised, so it was observed."""
    return Event(What.CHANGED, scene.place, found.op or None, certainty=Certainty.OBSERVED)


def created(scene: Scene, found: ViewWrite) -> tuple[Event, ...]:
    return () if found.maker is None else (scene.event_at(What.CREATED, found.maker),)


def requires_grad(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad
