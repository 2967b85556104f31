"""Inference tensors: which one a statement uses, and the inference_mode that made it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch

from .origin import computation, inside, surfaced, walker_of
from .scene import Scene
from .source_walk import Spot


def inference_tensors(scene: Scene) -> Iterator[tuple[Spot, torch.Tensor]]:
    """The expressions of the failing statement that name an inference tensor."""
    spot = surfaced(scene)
    statement = None if spot is None else walker_of(scene).statement(spot)
    if spot is None or statement is None:
        return
    for node in (*ast.walk(spot.node), *ast.walk(statement)):
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
            if isinstance(getattr(node, "ctx", None), ast.Load) or isinstance(
                statement, ast.AugAssign
            ):
                found = inside(spot, node)
                value: Any = walker_of(scene).value(found)
                if isinstance(value, torch.Tensor) and value.is_inference():
                    yield found, value


def inference_mode(scene: Scene, spot: Spot) -> Spot | None:
    """The `torch.inference_mode()` (of a `with` or a decorator) under which a value was made."""
    walker = walker_of(scene)
    makers = walker.makers(spot)
    for maker in (*makers, *(c for m in makers for c in computation(scene, m))):
        index = walker.index(maker.scope.source)
        for around in index.ancestors(maker.node):
            found = _switch(around)
            if found is not None:
                return replace(maker, node=found, path=(), via=())
    return None


def _switch(node: ast.AST) -> ast.expr | None:
    """The expression of a `with` or a decorator that says inference_mode."""
    if isinstance(node, (ast.With, ast.AsyncWith)):
        given = [item.context_expr for item in node.items]
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        given = list(node.decorator_list)
    else:
        return None
    return next((e for e in given if "inference_mode" in ast.unparse(e)), None)
