"""Facts about living tensors and graphs, for a user who asks between two cells.

The program goes on afterwards, so nothing is read that could change it: asking a view that was
written in place for its `grad_fn` or `is_leaf` would rebuild its history (torch 2.13).
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from .names import Names
from .shapes import shown_shape


@dataclass(frozen=True)
class TensorReport:
    """A tensor as it is now.  `is_leaf` and `grad_fn` are None where asking would change it."""

    name: str
    dtype: str
    shape: str
    device: str
    requires_grad: bool
    version: int | None
    is_leaf: bool | None
    grad_fn: str | None
    grad: str | None
    view_of: tuple[str, ...] | None


def tensor_at(expression: str, namespace: Mapping[str, Any]) -> torch.Tensor:
    """The tensor that an expression without calls names; ValueError says why there is none."""
    try:
        tree = ast.parse(expression, mode="eval")
    except SyntaxError:
        raise ValueError(f"{expression!r} is no expression") from None
    if any(isinstance(node, (ast.Call, ast.Await, ast.NamedExpr)) for node in ast.walk(tree)):
        raise ValueError(f"{expression!r} would run code; give the result a name first")
    try:
        value = eval(compile(tree, "<autograd_explain>", "eval"), {}, dict(namespace))
    except Exception as error:
        raise ValueError(f"{expression}: {type(error).__name__}: {error}") from None
    if not isinstance(value, torch.Tensor):
        raise ValueError(f"{expression} is no tensor: its type is {type(value).__name__}")
    return value


def look(name: str, tensor: torch.Tensor, names: Names) -> TensorReport:
    """What is known about a tensor."""
    asked = may_ask(tensor)
    base = tensor._base
    gradient = tensor.grad if asked and (tensor.is_leaf or tensor.retains_grad) else None
    return TensorReport(
        name=name,
        dtype=str(tensor.dtype).removeprefix("torch."),
        shape=shown_shape(tensor),
        device=str(tensor.device),
        requires_grad=tensor.requires_grad,
        version=None if tensor.is_inference() else tensor._version,
        is_leaf=tensor.is_leaf if asked else None,
        grad_fn=_node_name(tensor.grad_fn) if asked else None,
        grad=None if gradient is None else shown_shape(gradient),
        view_of=None if base is None else tuple(n for n in names.of(base) if n != name),
    )


def may_ask(tensor: torch.Tensor) -> bool:
    """Whether asking for `grad_fn` and `is_leaf` leaves the tensor as it is."""
    base = tensor._base
    if base is None or tensor.is_inference() or not base.requires_grad:
        return True
    return tensor._version == 0


def _node_name(node: Any) -> str:
    return "" if node is None else str(node.name()).rpartition("::")[2]
