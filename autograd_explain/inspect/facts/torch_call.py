"""The call of torch's that failed (or warned): its arguments in the user's words, its live values.

For causes that are about what was handed to torch: optimizers, schedulers, `autograd.grad`, flags.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import torch

from ...arguments import given_by
from ...isolation.type_checks import is_a
from ...model import Role, TensorFact
from ...nodes import start_of
from ...program import called_name, is_of_package
from ..dataflow import ExprAt, Slicer
from ..dataflow.reaching_definitions import FUNCTIONS, all_bindings
from ..dataflow.safe_lookup import MISSING
from ..scene import Scene
from .called_back import library_asked


def local(scene: Scene, function: str, name: str, file: str = "") -> Any:
    """A local of a library frame of this failure, the innermost such frame first, or MISSING."""
    for live in reversed(scene.incident.frames):
        if live.function != function or scene.program.is_user_code(live.filename):
            continue
        if live.filename.replace("\\", "/").endswith(file) and name in live.frame.f_locals:
            return live.frame.f_locals[name]
    return MISSING


def failing_call(scene: Scene, *names: str) -> ExprAt | None:
    """The user's call that failed; where `names` are given, the call of one of these."""
    spot = scene.surfaced
    if spot is None:
        return None
    if isinstance(spot.node, ast.Call) and (not names or spot.called in names):
        return spot
    statement = scene.slicer.statement(spot)
    calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call)] if statement else []
    fitting = [n for n in calls if called_name(n) in names] if names else calls
    return spot.inside(fitting[0]) if len(fitting) == 1 else None


def backward_roots(scene: Scene) -> list[ExprAt]:
    """What backward or grad was called on, one expression for each where they are listed; of a
    call of a library, what that was handed of the failing graph."""
    if library_asked(scene) is not None:
        return _handed_of_graph(scene)
    call = failing_call(scene, "backward", "grad")
    given = None if call is None else gone_back_from(scene, call)
    return [] if given is None else elements(scene, given)


def _handed_of_graph(scene: Scene) -> list[ExprAt]:
    """`loss` of `engine.backward(loss)`; the library may scale it first."""
    call = scene.surfaced
    if call is None or not isinstance(call.node, ast.Call):
        return []
    spots = [call.inside(a) for _, a in given_by(call.node)]
    spots = spots if call.receiver is None else [call.receiver, *spots]
    values = ((s, scene.slicer.value(s)) for s in spots)
    return [s for s, v in values if is_a(v, torch.Tensor) and scene.graph.find(start_of(v))]


def gone_back_from(scene: Scene, call: ExprAt) -> ExprAt | None:
    """What a call of backward or grad goes back from, a list of it where one is given: `loss` of
    `loss.backward()`, of `torch.autograd.backward(loss)`, of `torch.autograd.grad(loss, x)` and of
    a library's `engine.backward(loss)`."""
    owner = call.receiver
    value = MISSING if owner is None else scene.slicer.value(owner)
    if owner is None or call.called in ("grad", "manual_backward") or is_a(value, ModuleType):
        return call.argument(0, "tensors", "outputs")
    of_package = value is not MISSING and is_of_package(type(value))
    given = call.argument(0) if of_package else None
    return owner if given is None else given


def differentiated(scene: Scene) -> tuple[Any, ...]:
    """The `inputs` of the failing grad (or backward), from torch's own frame."""
    for function, name in (("grad", "t_inputs"), ("grad", "inputs"), ("backward", "inputs")):
        inputs = local(scene, function, name, "torch/autograd/__init__.py")
        if isinstance(inputs, torch.Tensor):
            return (inputs,)
        if isinstance(inputs, (tuple, list)):
            return tuple(inputs)
    return ()


def handed_on(
    scene: Scene, roots: list[ExprAt], asked: ExprAt | None
) -> tuple[list[ExprAt], ExprAt | None]:
    """What grad is asked for, in the caller's words where a helper only hands it on: `u` and `s`
    of `derivative(u, s)` for `grad(y.sum(), x)` inside."""
    slicer = scene.slicer
    while asked is not None and roots and asked.scope.call is not None:
        names = [parameter_of(slicer, s) for s in (*roots, asked)]
        given = [slicer.argument(asked.scope, n) for n in names if n]
        found = [g for g in given if g is not None and g.scope is asked.scope.call.scope]
        if len(found) < len(names):
            break
        *roots, asked = found
    return roots, asked


def parameter_of(slicer: Slicer, spot: ExprAt) -> str:
    """The one parameter that an expression reads of the function around it, "" if that also has
    names of its own in it or gives the parameter another value."""
    if not isinstance(spot.scope.body, FUNCTIONS):
        return ""
    names = {n.id for n in ast.walk(spot.node) if isinstance(n, ast.Name)}
    own = {n for n in names if n in spot.scope.values}
    bound = any(all_bindings(spot.scope.body, n) for n in own)
    return own.pop() if len(own) == 1 and not bound else ""


def elements(scene: Scene, spot: ExprAt) -> list[ExprAt]:
    """The elements of a list or tuple, followed through one name; the spot itself otherwise."""
    node = spot.node
    if isinstance(node, (ast.List, ast.Tuple)):
        return [spot.inside(e) for e in node.elts]
    if isinstance(node, ast.Name):
        made = scene.slicer.makers(spot)
        if len(made) == 1 and isinstance(made[0].node, (ast.List, ast.Tuple)):
            return [made[0].inside(e) for e in made[0].node.elts]
    return [spot]


def without_flag(scene: Scene) -> tuple[int, torch.Tensor, ExprAt | None] | None:
    """The first of the tensors that `torch.autograd.grad` was given which does not require grad,
    with its index and the expression for it."""
    call = failing_call(scene, "grad", "backward")
    given = call and call.argument(1, "inputs")
    listed = [] if given is None else elements(scene, given)
    for i, tensor in enumerate(differentiated(scene)):
        if isinstance(tensor, torch.Tensor) and not tensor.requires_grad:
            return i, tensor, listed[i] if i < len(listed) else None
    return None


def maker(scene: Scene, spot: ExprAt | None) -> ExprAt | None:
    """The one expression that computed a value; None where there are several or none."""
    if spot is None:
        return None
    found = scene.slicer.makers(spot)
    return found[0] if len(found) == 1 and isinstance(found[0].node, ast.expr) else None


def live_value(scene: Scene, spot: ExprAt | None) -> Any:
    """The object an expression names, or MISSING; nothing is run."""
    return MISSING if spot is None else scene.slicer.value(spot)


def is_called_on(scene: Scene, call: ExprAt, owner: Any) -> bool:
    """Whether a call's receiver is this very object; False where either cannot be read."""
    return owner is not MISSING and live_value(scene, call.receiver) is owner


def calls_in(scene: Scene, *names: str) -> Iterator[ExprAt]:
    """The calls of what torch has under these names anywhere in the user's program, newest source
    first."""
    found = scene.index.calls(*names, of="torch")
    return (scene.slicer.at(source, call) for source, call in found)


def optimizers_made(scene: Scene) -> Iterator[ExprAt]:
    """The calls of classes of torch.optim anywhere in the user's program, newest source first."""
    return calls_in(scene, *(n for n in vars(torch.optim) if n[:1].isupper()))


def before(scene: Scene, one: ExprAt, other: ExprAt) -> bool:
    """Whether one expression stands before another of the same function or cell."""
    if one.scope.source is not other.scope.source:
        return (one.scope.source.cell or 0) < (other.scope.source.cell or 0)
    return (one.node.lineno, one.node.col_offset) < (other.node.lineno, other.node.col_offset)


def tensor_fact(scene: Scene, tensor: Any, *names: str, role: Role = Role.CULPRIT) -> TensorFact:
    """A tensor's data, live names first; only the names where it is no longer there."""
    if isinstance(tensor, torch.Tensor):
        return scene.fact(role, tensor, *names)
    return TensorFact(role, tuple(dict.fromkeys(n for n in names if n)))


def best_name(fact: TensorFact, default: str = "") -> str:
    return fact.names[0] if fact.names else default
