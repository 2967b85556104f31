"""Ids that a gradient is asked of, and the embedding layer that looks them up."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from ...arguments import bound_arguments, positional_parameters
from ...isolation.type_checks import class_attribute, is_a
from ...model import Place
from ...program import own_nodes
from ..dataflow import ExprAt
from ..dataflow.safe_lookup import MISSING
from ..live.class_source import function_node
from ..scene import Scene


@dataclass(frozen=True)
class EmbeddedIds:
    """`call` is the call that is given the ids called `name`; `layer` spells the embedding layer
    behind it, "" where the call is that layer's own, and `trained` tells that it gets a gradient.
    """

    name: str
    call: Place
    layer: str
    trained: bool


def embedded_ids(scene: Scene, ids: ExprAt | None) -> EmbeddedIds | None:
    """The one call in the function around the expression, or in its cell, that looks the ids up.
    None where several do, or where the layer is not known."""
    if ids is None or not isinstance(ids.node, ast.Name):
        return None
    tensor = scene.slicer.value(ids)
    found = [
        (node, key)
        for node in own_nodes(ids.scope.body)
        if isinstance(node, ast.Call) and (key := _given(scene, ids, node, tensor)) is not None
    ]
    known = [made for node, key in found if (made := _looked_up(scene, ids, node, key)) is not None]
    return known[0] if len(known) == 1 else None


def _given(scene: Scene, ids: ExprAt, call: ast.Call, tensor: Any) -> str | None:
    """The key of the ids in a dict that the call is given, "" where it is given them alone."""
    for value in (*call.args, *(k.value for k in call.keywords if k.arg)):
        if isinstance(value, ast.Name) and value.id == ids.text:
            return ""
    for spread in (k.value for k in call.keywords if k.arg is None):
        held = scene.slicer.value(ids.inside(spread))
        for key, value in held.items() if type(held) is dict else ():
            if value is tensor and isinstance(tensor, torch.Tensor) and isinstance(key, str):
                return key
    return None


def _looked_up(scene: Scene, ids: ExprAt, call: ast.Call, key: str) -> EmbeddedIds | None:
    module = scene.slicer.value(ids.inside(call.func))
    if module is MISSING or not is_a(module, torch.nn.Module):
        return None
    place, callee = scene.slicer.place(ids.inside(call)), ast.unparse(call.func)
    if is_a(module, torch.nn.Embedding):
        return EmbeddedIds(ids.text, place, "", module.weight.requires_grad)
    layers = {n: m for n, m in module.named_modules() if is_a(m, torch.nn.Embedding)}
    paths = list(layers) if len(layers) == 1 else [*_given_to(module, call, ids.text, key)]
    if len(paths) != 1:
        return None
    path, trained = re.sub(r"\.(\d+)", r"[\1]", paths[0]), layers[paths[0]].weight.requires_grad
    return EmbeddedIds(ids.text, place, f"{callee}.{path}", trained)


def _given_to(module: Any, call: ast.Call, name: str, key: str) -> Iterator[str]:
    """The layers that a `forward` of the module, or of one in it, gives what the call gives: as a
    rule it has the same name all the way down."""
    forward = _forward(module)
    bound = {} if forward is None else bound_arguments(forward, call)
    given = key or next((p for p, value in bound.items() if ast.unparse(value) == name), "")
    for path, inner in module.named_modules():
        function = _forward(inner)
        if function is None or given not in positional_parameters(function):
            continue
        for node in own_nodes(function):
            if isinstance(node, ast.Call) and [*map(ast.unparse, node.args)] == [given]:
                owner, _, layer = ast.unparse(node.func).rpartition(".")
                if owner == "self" and is_a(inner._modules.get(layer), torch.nn.Embedding):
                    yield f"{path}.{layer}" if path else layer


def _forward(module: Any) -> ast.FunctionDef | None:
    return function_node(class_attribute(type(module), "forward"))
