"""Ids that a gradient is asked of, and the embedding layer that looks them up."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Any

import torch

from ...isolation.type_checks import class_attribute, is_a
from ...model import Place
from ...program import own_nodes
from ..dataflow import ExprAt
from ..dataflow.safe_lookup import MISSING
from ..scene import Scene


@dataclass(frozen=True)
class EmbeddedIds:
    """`call` is the call that is given the ids called `name`; `layer` spells the embedding layer
    behind it, "" where the call is that layer's own, and `trained` tells that it gets a gradient.

    `takes_vectors` says that the module takes the looked-up vectors as `inputs_embeds`; `key` is
    that of the ids in a dict handed over.
    """

    name: str
    call: Place
    layer: str
    trained: bool
    takes_vectors: bool = False
    key: str = ""


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
    layers = {n: m for n, m in module.named_modules() if is_a(m, torch.nn.Embedding)}
    trained = all(layer.weight.requires_grad for layer in layers.values())
    if is_a(module, torch.nn.Embedding):
        return EmbeddedIds(ids.text, place, "", trained)
    if _takes_vectors(module):
        layer = f"{callee}.get_input_embeddings()"
        return EmbeddedIds(ids.text, place, layer, trained, True, key)
    if len(layers) != 1:
        return None
    path = re.sub(r"\.(\d+)", r"[\1]", next(iter(layers)))
    return EmbeddedIds(ids.text, place, f"{callee}.{path}", trained)


def _takes_vectors(module: Any) -> bool:
    """Whether it is one of those that may be given the vectors instead of the ids."""
    forward: Any = class_attribute(type(module), "forward")
    while (inner := getattr(forward, "__dict__", {}).get("__wrapped__")) is not None:
        forward = inner  # behind its decorators
    code = getattr(forward, "__code__", None)
    named = () if code is None else code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    known = class_attribute(type(module), "get_input_embeddings")
    return "inputs_embeds" in named and callable(known)
