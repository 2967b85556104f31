"""A detached tensor whose `.grad` was read: its memory is a leaf's, and that one has the
gradient."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

import torch

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.facts.value_names import stored_names
from autograd_explain.inspect.live.names import covers_same_elements
from autograd_explain.inspect.scene import Scene
from autograd_explain.program import called_name


@dataclass(frozen=True, eq=False)
class GradAlias:
    """`maker` gave the detached tensor, None where the source does not show it; `leaf` is the
    user's name of the leaf.  `original` is the leaf's expression, where it stands for the leaf at
    the failing line, too."""

    maker: ExprAt | None
    leaf: str
    original: ExprAt | None


def grad_alias(scene: Scene, shown: ExprAt, tensor: Any) -> GradAlias | None:
    """What stands behind `shown`; None where it is no alias of a leaf."""
    makers = [m for m in scene.slicer.makers(shown) if m.node is not shown.node]
    maker = makers[0] if len(makers) == 1 else None
    if not isinstance(tensor, torch.Tensor):
        whole = maker is not None and maker.called == "state_dict"
        return GradAlias(maker, "", None) if whole else None
    leaf = _leaf_behind(scene, tensor)
    if tensor.requires_grad or leaf is None:
        return None
    names = [n.name for n in scene.names.tensors if n.tensor is leaf]
    original = None if maker is None else _original(scene, shown, maker)
    name = original.text if original is not None else next(iter(names), "")
    return GradAlias(maker, name, original)


def _leaf_behind(scene: Scene, tensor: torch.Tensor) -> torch.Tensor | None:
    """The leaf with a gradient that covers the same elements."""
    for named in scene.names.tensors:
        other = named.tensor
        if other is not tensor and other.requires_grad and other.is_leaf:
            if other.grad is not None and covers_same_elements(other, tensor):
                return other
    return None


def _original(scene: Scene, shown: ExprAt, maker: ExprAt) -> ExprAt | None:
    """`p` of `d = p.data`, where `d.grad` is read in the same scope."""
    if shown.text not in stored_names(scene, maker) or maker.scope.body is not shown.scope.body:
        return None
    node = maker.node
    if isinstance(node, ast.Call) and called_name(node) == "detach":
        node = node.func
    if not (isinstance(node, ast.Attribute) and node.attr in ("data", "detach")):
        return None
    plain = not any(isinstance(n, ast.Call) for n in ast.walk(node.value))
    return maker.inside(node.value) if plain else None
