"""Inference tensors: which one a statement uses, and the inference_mode that made it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.facts.expressions import computation
from autograd_explain.inspect.scene import Scene


def inference_tensors(scene: Scene) -> Iterator[tuple[ExprAt, torch.Tensor]]:
    """The expressions of the failing statement that name an inference tensor."""
    spot = scene.surfaced
    statement = None if spot is None else scene.slicer.statement(spot)
    if spot is None or statement is None:
        return
    for node in (*ast.walk(spot.node), *ast.walk(statement)):
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
            if isinstance(getattr(node, "ctx", None), ast.Load) or isinstance(
                statement, ast.AugAssign
            ):
                found = spot.inside(node)
                value: Any = scene.slicer.value(found)
                if isinstance(value, torch.Tensor) and value.is_inference():
                    yield found, value


def unpacked_together(scene: Scene, shown: ExprAt) -> tuple[str, ...]:
    """The names that got inference tensors by one unpacking with this one: `feats, labels`."""
    source, body = shown.scope.source, shown.scope.body
    for node in ast.walk(body):
        loop = node.target if isinstance(node, (ast.For, ast.AsyncFor)) else None
        targets = node.targets if isinstance(node, ast.Assign) else [loop]
        for target in (t for t in targets if isinstance(t, (ast.Tuple, ast.List))):
            names = [n.id for n in ast.walk(target) if isinstance(n, ast.Name)]
            if shown.text in names and source.function_around(node) is _function(shown):
                return tuple(n for n in names if _is_inference(scene, shown, n))
    return ()


def _function(spot: ExprAt) -> ast.AST | None:
    body = spot.scope.body
    return body if isinstance(body, (ast.FunctionDef, ast.AsyncFunctionDef)) else None


def _is_inference(scene: Scene, shown: ExprAt, name: str) -> bool:
    value = scene.slicer.value(scene.slicer.imagined(shown, ast.Name(name, ast.Load())))
    return isinstance(value, torch.Tensor) and value.is_inference()


def inference_mode(scene: Scene, spot: ExprAt) -> tuple[ExprAt | None, bool]:
    """The `torch.inference_mode()` (of a `with` or a decorator) to blame for a value, and whether
    it is the one around the only statement that makes the value: else something that the value
    was computed from was made there."""
    slicer = scene.slicer
    makers = slicer.makers(spot)
    for maker in (*makers, *(c for m in makers for c in computation(scene, m))):
        index = slicer.index(maker.scope.source)
        for around in index.ancestors(maker.node):
            found = _switch(around)
            if found is not None:
                return replace(maker, node=found, path=(), via=()), makers == [maker]
    return None, False


def _switch(node: ast.AST) -> ast.expr | None:
    """The expression of a `with` or a decorator that says inference_mode."""
    if isinstance(node, (ast.With, ast.AsyncWith)):
        given = [item.context_expr for item in node.items]
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        given = list(node.decorator_list)
    else:
        return None
    return next((e for e in given if "inference_mode" in ast.unparse(e)), None)
