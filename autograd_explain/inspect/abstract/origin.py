"""Where a value came from: its steps backwards through the walk."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

import torch

from .trace import Step, Trace, storage_of
from .values import UNKNOWN

_LIMIT = 200


def steps_behind(trace: Trace, value: Any, before: int | None = None) -> list[Step]:
    """The steps a value was computed by, newest first: births and in-place writes."""
    found: dict[int, Step] = {}
    todo = [(value, len(trace.steps) if before is None else before)]
    while todo and len(found) < _LIMIT:
        value, order = todo.pop()
        for step in _made_or_written(trace, value, order):
            if step.order not in found:
                found[step.order] = step
                todo.extend((source, step.order) for source in step.inputs)
    return [found[order] for order in sorted(found, reverse=True)]


def _made_or_written(trace: Trace, value: Any, before: int) -> list[Step]:
    birth = trace.birth(value)
    steps = [] if birth is None or birth.order >= before else [birth]
    if isinstance(value, torch.Tensor) and trace.writes:
        storage = storage_of(value)
        steps.extend(
            w.step for w in trace.writes
            if w.step.order < before and storage_of(w.tensor) == storage
        )  # fmt: skip
    return steps


def evaluate(expression: str, scope: Mapping[str, Any]) -> Any:
    """A name, attribute or item of the walk's own objects; UNKNOWN for anything that would run."""
    try:
        return _evaluate(ast.parse(expression.strip(), mode="eval").body, scope)
    except (SyntaxError, ValueError, LookupError, TypeError, AttributeError):
        return UNKNOWN


def _evaluate(node: ast.expr, scope: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Name):
        return scope[node.id]
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Attribute):
        return _member(_evaluate(node.value, scope), node.attr)
    if isinstance(node, ast.Subscript):
        owner, key = _evaluate(node.value, scope), _evaluate(node.slice, scope)
        if isinstance(owner, torch.nn.Module) and isinstance(key, int):
            return list(owner.children())[key]
        return owner[key] if isinstance(owner, (list, tuple, dict)) else UNKNOWN
    return UNKNOWN


def _member(owner: Any, name: str) -> Any:
    """An attribute that is stored, not computed."""
    stored = getattr(owner, "__dict__", {})
    if name in stored:
        return stored[name]
    for registry in ("_parameters", "_buffers", "_modules"):
        if name in stored.get(registry, {}):
            return stored[registry][name]
    return UNKNOWN
