"""Properties that are read, and the leaves that one computes its value from each time."""

from __future__ import annotations

import ast
from types import BuiltinFunctionType
from typing import Any

import torch

from ...isolation.type_checks import class_attribute, is_a
from ..dataflow import ExprAt
from ..dataflow.safe_lookup import attribute
from ..live.class_source import function_node
from ..scene import Scene

_PLAIN = (bool, int, float, str, type(None), torch.dtype, torch.device, BuiltinFunctionType)


def property_at(scene: Scene, shown: ExprAt) -> tuple[ExprAt, Any, property] | None:
    """The object of which an expression reads a property, as code and itself, and the property;
    None where it reads none."""
    if not isinstance(shown.node, ast.Attribute):
        return None
    owner = shown.inside(shown.node.value)
    value = scene.slicer.value(owner)
    found = class_attribute(type(value), shown.node.attr)
    return (owner, value, found) if isinstance(found, property) else None


def leaves_of_property(scene: Scene, shown: ExprAt | None) -> tuple[str, ...]:
    """`kernel.raw_scale` of `kernel.scale`, where `scale` is a property that reads leaves of its
    object and nothing else that may carry a gradient; () elsewhere."""
    read = None if shown is None else property_at(scene, shown)
    if read is None:
        return ()
    owner, value, found = read
    names = _read_by(found.fget)
    held = {n: v for n in names if not _without_gradient(v := attribute(value, n))}
    known = all(is_a(v, torch.Tensor) and v.is_leaf for v in held.values())
    return tuple(f"{owner.text}.{n}" for n in held) if known else ()


def _without_gradient(value: Any) -> bool:
    if is_a(value, torch.nn.Module):
        return not any(p.requires_grad for p in value.parameters())
    return not value.requires_grad if is_a(value, torch.Tensor) else is_a(value, _PLAIN)


def _read_by(getter: Any) -> tuple[str, ...]:
    """The attributes of its object that a getter reads; () where it does more with the object."""
    function = function_node(getter)
    if function is None or not function.args.args:
        return ()
    own = function.args.args[0].arg
    nodes = (n for n in ast.walk(function) if isinstance(n, ast.Attribute))
    read = {n.value: n.attr for n in nodes if isinstance(n.value, ast.Name) and n.value.id == own}
    named = sum(isinstance(n, ast.Name) and n.id == own for n in ast.walk(function))
    return tuple(read.values()) if len(read) == named else ()
