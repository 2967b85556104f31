"""The view whose history torch does not tell, because the tensor behind it was written since."""

from __future__ import annotations

import ast
from typing import Any

import torch

from autograd_explain.inspect.facts.view_write import ViewWrite, view_maker
from autograd_explain.inspect.scene import Scene


def refused_read(scene: Scene) -> ViewWrite | None:
    """The one view that the failing expression reads and that torch refuses, as a `ViewWrite`
    without an operation; None where it has no name there or there are several."""
    at = scene.surfaced
    if at is None:
        return None
    found: dict[int, ViewWrite] = {}
    for node in ast.walk(at.node):
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
            spot = at.inside(node)
            value = scene.slicer.value(spot)
            if _is_refused(value):
                found.setdefault(id(value), ViewWrite(spot, value, view_maker(scene, spot), ""))
    return next(iter(found.values())) if len(found) == 1 else None


def _is_refused(value: Any) -> bool:
    """Asking raises the failure again; a sound view gets the history that a use would give it."""
    if not isinstance(value, torch.Tensor) or not value._is_view():
        return False
    try:
        value.grad_fn  # noqa: B018
    except RuntimeError:
        return True
    return False
