"""An operation inside `backward` that was given tensors of several dtypes."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from autograd_explain.incident import backward_context
from autograd_explain.inspect.dataflow import ExprAt, safe_lookup
from autograd_explain.inspect.dataflow.operands import operands
from autograd_explain.inspect.scene import Scene
from autograd_explain.program import called_name

#: What makes another dtype of a tensor: the result is not that of what it was called on.
_CASTS = frozenset("to type type_as float double half bfloat16 long int bool short byte".split())


@dataclass(frozen=True)
class Mixed:
    """The operand to convert, its dtype, and the operand whose dtype it should have."""

    operand: ExprAt
    dtype: str
    like: str  #: in the program's words
    wanted: str


def function_running(scene: Scene) -> type | None:
    """The custom Function whose backward raised the error."""
    found = getattr(type(backward_context(scene.incident.frames)), "_forward_cls", None)
    return found if isinstance(found, type) else None


def mixed(scene: Scene) -> Mixed | None:
    """Of the failing expression's operands the one of another dtype than the incoming gradient,
    or than what is written to; None where there is not exactly one."""
    spot = scene.surfaced
    if spot is None or not scene.incident.user_frames:
        return None
    if scene.incident.user_frames[-1].function != "backward":
        return None
    like, *others = _operands(scene, spot)
    wanted = _dtype(scene, like) if like is not None else None
    if like is None or wanted is None or not wanted.is_floating_point:
        return None
    known = [(o, _dtype(scene, o)) for o in others if o is not None]
    wrong = [(o, d) for o, d in known if d is not None and d is not wanted]
    if len(wrong) != 1:
        return None
    return Mixed(wrong[0][0], _name(wrong[0][1]), like.text, _name(wanted))


def _operands(scene: Scene, spot: ExprAt) -> list[ExprAt | None]:
    """What sets the dtype, and what should have it."""
    statement = scene.slicer.statement(spot)
    if isinstance(statement, ast.AugAssign) and spot.node in (statement, statement.target):
        return [spot.inside(statement.target), spot.inside(statement.value)]
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    if isinstance(target, ast.Subscript) and spot.node is target:
        return [spot.inside(target.value), spot.inside(statement.value)]  # type: ignore[union-attr]
    read = operands(scene.slicer, spot)
    if isinstance(spot.node, ast.Call) and called_name(spot.node).endswith("_"):
        return [*read]
    return [_gradient(scene, spot), *read]


def _gradient(scene: Scene, spot: ExprAt) -> ExprAt | None:
    """The gradient that `backward` was handed first."""
    code = scene.incident.user_frames[-1].code
    if code.co_argcount < 2:
        return None
    return spot.inside(ast.Name(code.co_varnames[1], ast.Load()))


def _dtype(scene: Scene, spot: ExprAt) -> torch.dtype | None:
    """The dtype of a value; of one that no name has, of all tensors it is made from."""
    value: Any = scene.slicer.value(spot)
    if safe_lookup.is_tensor(value):
        own: torch.dtype = value.dtype
        return own
    inner = [n for n in ast.walk(spot.node) if isinstance(n, ast.expr)]
    if any(called_name(n) in _CASTS for n in inner):
        return None
    found = set(_dtypes(scene, spot, inner))
    return found.pop() if len(found) == 1 else None


def _dtypes(scene: Scene, spot: ExprAt, inner: list[ast.expr]) -> Iterator[torch.dtype]:
    indices = {id(n) for s in inner if isinstance(s, ast.Subscript) for n in ast.walk(s.slice)}
    for node in inner:
        value: Any = None if id(node) in indices else scene.slicer.value(spot.inside(node))
        if safe_lookup.is_tensor(value):
            yield value.dtype


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
