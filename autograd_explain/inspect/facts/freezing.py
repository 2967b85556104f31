"""Which statement set requires_grad to False, and which tensor never got the flag."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from ...arguments import bound_arguments, default, values_given
from ...program import Function, called_name
from ..dataflow import ExprAt
from ..dataflow.safe_lookup import MISSING
from ..scene import Scene
from .value_names import outer_names, stored_names

_CONSTRUCTORS = frozenset({
    "tensor", "rand", "randn", "zeros", "ones", "full", "empty", "linspace", "arange", "eye",
    "rand_like", "randn_like", "zeros_like", "ones_like", "full_like", "from_numpy", "as_tensor",
    "Tensor", "FloatTensor", "DoubleTensor", "logspace", "normal",
})  # fmt: skip
_PARTS = frozenset({"parameters", "named_parameters", "modules", "children", "named_modules"})


@dataclass(frozen=True, eq=False)
class Frozen:
    """`statement` is the expression that froze; `whole` says that no parameter of the modules
    is left to train; `names` are what the user calls them; `objects` are what it froze; `handed`
    is the call that gave a helper one of them: `freeze(net)`."""

    statement: ExprAt | None
    names: tuple[str, ...]
    whole: bool
    objects: tuple[torch.nn.Module, ...] = ()
    handed: ExprAt | None = None


@dataclass(frozen=True, eq=False)
class MissingFlag:
    """A tensor whose gradient the program asks for, and the expression that made it."""

    maker: ExprAt
    names: tuple[str, ...]


def freezing(scene: Scene, modules: tuple[ExprAt, ...]) -> Frozen:
    """Who froze the modules that a loss was computed with."""
    slicer = scene.slicer
    values = [v for v in map(slicer.value, modules) if isinstance(v, torch.nn.Module)]
    roots = _named_owners(scene, values)
    owners = [*values, *(m for _, m in roots)]
    flags = list(_flags_set(scene))
    freezers = [s for s, flag in flags if _is_false(flag)]
    found = [s for s in freezers if _concerns(scene, s, owners)]
    if len(freezers) == 1 and not any(v is not MISSING for v in _frozen_by(scene, freezers[0])):
        found = freezers  # what a returned function froze cannot be read, but nothing else did
    if not values and not found:
        # Whose forward it was is unknown (several objects of one class): what is frozen now.
        found = [s for s in freezers if any(map(_is_frozen, _frozen_by(scene, s)))]
    found = found or [s for s in freezers if _called_with(scene, s, owners)]
    first = found[:1] or [s for s, flag in flags if not _is_false(flag)]
    asked = [(s, flag) for s, flag in flags if s in first]
    helped = [(s, *h) for s, flag in asked if (h := _handing_call(scene, s, flag, owners))]
    found = found or [s for s, *_ in helped]
    statement = found[0] if found else None
    froze = [] if statement is None else _frozen_by(scene, statement)
    froze += [module for *_, module in helped[:1]]
    objects = tuple(v for v in froze if isinstance(v, torch.nn.Module))
    own = [s.text for s in found[:1] if any(v is slicer.value(s) for v in objects)]
    names = [n for n, _ in roots] + own + [s.text for s in modules]
    whole = bool(values) and not any(p.requires_grad for v in values for p in v.parameters())
    handed = next((call for _, call, _ in helped), None)
    return Frozen(statement, tuple(dict.fromkeys(names)), whole, objects, handed)


def _named_owners(
    scene: Scene, modules: list[torch.nn.Module]
) -> list[tuple[str, torch.nn.Module]]:
    """The user's modules that contain them (`clf` for `self.head`), outermost first."""
    found = []
    for name, value in scene.names.objects:
        if isinstance(value, torch.nn.Module):
            inner = {id(m) for m in value.modules()}
            if any(id(m) in inner for m in modules):
                found.append((name, value))
    return found


def freezers_of(scene: Scene) -> Iterator[ExprAt]:
    """Every `….requires_grad = False` and `….requires_grad_(False)` of the program, newest first;
    the spot is the object whose flag is set."""
    return (spot for spot, flag in _flags_set(scene) if _is_false(flag))


def freezer_of(scene: Scene, tensor: torch.Tensor) -> ExprAt | None:
    """The newest of these that froze a tensor: it alone, or what holds it."""
    for spot in freezers_of(scene):
        if any(v is tensor or _holds(v, {id(tensor)}) for v in _frozen_by(scene, spot)):
            return spot
    return None


def _flags_set(scene: Scene) -> Iterator[tuple[ExprAt, ast.expr]]:
    """The objects whose flag is set, with what it is set to."""
    for source, node in scene.index.nodes(ast.AST, newest_first=True):
        found = _flag_set(node)
        if found is not None:
            yield scene.slicer.at(source, found[0]), found[1]


def _flag_set(node: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target, value = node.targets[0], node.value
        if isinstance(target, ast.Attribute) and target.attr == "requires_grad":
            return target.value, value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        given = values_given(node)
        if node.func.attr == "requires_grad_" and given:
            return node.func.value, given[0]
    return None


def frozen_modules(scene: Scene, freezer: ExprAt) -> Iterator[ExprAt]:
    """`net` of `for p in net.parameters(): p.requires_grad_(False)`, and the object itself."""
    yield freezer
    for maker in scene.slicer.makers(freezer):
        node = maker.node
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in _PARTS:
                yield maker.inside(node.func.value)


def _is_false(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _concerns(scene: Scene, spot: ExprAt, owners: list[torch.nn.Module]) -> bool:
    """Whether the frozen object is one of the modules, or a parameter taken from one."""
    parameters = {id(p) for m in owners for p in m.parameters()}
    return any(
        any(v is m for m in owners) or id(v) in parameters or _holds(v, parameters)
        for v in _frozen_by(scene, spot)
    )


def _frozen_by(scene: Scene, spot: ExprAt) -> list[Any]:
    """The live objects whose flag is set: the expression's own, and the modules behind it."""
    slicer = scene.slicer
    held: list[Any] = [slicer.value(spot)]
    for maker in slicer.makers(spot):
        # `for p in net.parameters()`: the receiver of the call is the module.
        if isinstance(maker.node, ast.Call) and isinstance(maker.node.func, ast.Attribute):
            held.append(slicer.value(maker.inside(maker.node.func.value)))
    return held


def _called_with(scene: Scene, spot: ExprAt, owners: list[torch.nn.Module]) -> bool:
    """Whether some call gives the freezing function one of the modules: `freeze(judge)`."""
    slicer = scene.slicer
    for source, node in scene.index.calls_of(spot.function) if spot.function else ():
        given = values_given(node)
        if isinstance(node.func, ast.Attribute):
            given.append(node.func.value)
        if any(slicer.value(slicer.at(source, a)) is m for a in given for m in owners):
            return True
    return False


def _handing_call(
    scene: Scene, spot: ExprAt, flag: ast.expr, owners: list[torch.nn.Module]
) -> tuple[ExprAt, torch.nn.Module] | None:
    """The newest call that hands one of the modules to the function which sets its flags, to False,
    and computes nothing with it; and the module."""
    slicer, function = scene.slicer, spot.scope.source.function_around(spot.node)
    if function is None:
        return None
    named = flag.id if isinstance(flag, ast.Name) else ""
    for source, call in scene.index.calls_of(function.name):
        given = bound_arguments(function, call)
        set_to = given.get(named) or default(function, named) if named else flag
        for name, value in given.items():
            if name == "self" or _computes_with(function, name):
                continue
            values = [slicer.value(slicer.at(source, v)) for v in getattr(value, "elts", [value])]
            module = next((m for m in owners if any(v is m for v in values)), None)
            if module is not None and _is_false(set_to):
                return slicer.at(source, call), module
    return None


def _computes_with(function: Function, name: str) -> bool:
    """Whether a function calls what it is given, or hands it on."""
    calls = (n for n in ast.walk(function) if isinstance(n, ast.Call))
    used = (n for c in calls if not hasattr(builtins, called_name(c) or "") for n in _used(c))
    return any(isinstance(n, ast.Name) and n.id == name for n in used)


def _used(call: ast.Call) -> list[ast.expr]:
    return [call.func, *call.args, *(k.value for k in call.keywords)]


def _is_frozen(value: Any) -> bool:
    parameters = list(value.parameters()) if isinstance(value, torch.nn.Module) else []
    return bool(parameters) and not any(p.requires_grad for p in parameters)


def _holds(value: Any, parameters: set[int]) -> bool:
    return isinstance(value, torch.nn.Module) and any(
        id(p) in parameters for p in value.parameters()
    )


def missing_flag(scene: Scene, root: ExprAt | None) -> MissingFlag | None:
    """The one tensor behind `root` whose gradient the program reads or an optimizer is given."""
    if root is None:
        return None
    found: dict[int, MissingFlag] = {}
    for spot, maker in _constructed(scene, root):
        names = tuple(
            dict.fromkeys((*outer_names(scene, spot), spot.text, *stored_names(scene, maker)))
        )
        if _wants_gradient(scene, names):
            found.setdefault(id(maker.node), MissingFlag(maker, names))
    return next(iter(found.values())) if len(found) >= 1 else None


def _constructed(scene: Scene, root: ExprAt) -> Iterator[tuple[ExprAt, ExprAt]]:
    """The named tensors that `root` was computed from, with their constructors."""
    slicer = scene.slicer
    pending, seen = [root], set[int]()
    while pending and len(seen) < 500:
        spot = pending.pop(0)
        if id(spot.node) in seen:
            continue
        seen.add(id(spot.node))
        for maker in slicer.makers(spot):
            if isinstance(maker.node, ast.Call) and maker.called in _CONSTRUCTORS:
                names = [
                    v for v in (*maker.via, spot) if isinstance(v.node, (ast.Name, ast.Attribute))
                ]
                if names:
                    yield names[-1], maker
                continue
            pending += slicer.operands(maker)


def _wants_gradient(scene: Scene, names: tuple[str, ...]) -> bool:
    """Whether the program reads `name.grad`, or gives the name to an optimizer."""
    read = (ast.unparse(n.value) for _, n in scene.index.nodes(ast.Attribute) if n.attr == "grad")
    made = (n for _, n in scene.index.nodes(ast.Call) if _is_optimizer(n))
    given = (ast.unparse(n) for call in made for a in call.args[:1] for n in ast.walk(a))
    return not {*read, *given}.isdisjoint(names)


def _is_optimizer(node: ast.Call) -> bool:
    name = called_name(node)
    return "optim" in ast.unparse(node.func) or hasattr(torch.optim, name)
