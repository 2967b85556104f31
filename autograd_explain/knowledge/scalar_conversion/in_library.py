"""The number that a library takes out of a tensor which the user's call hands to it."""

from __future__ import annotations

import ast
from dataclasses import dataclass

import torch

from autograd_explain.incident import LiveFrame
from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.dataflow.failing_expression import expression_at
from autograd_explain.inspect.dataflow.safe_lookup import in_frame
from autograd_explain.inspect.facts.handed_to_library import arguments_handed, entered
from autograd_explain.inspect.scene import Scene
from autograd_explain.isolation.type_checks import is_a
from autograd_explain.model import Place
from autograd_explain.program import library_source

#: torch's own code, and the recorder's between it and the user.
_PASSED_THROUGH = ("torch", "autograd_explain")


@dataclass(frozen=True, eq=False)
class TakenInLibrary:
    """`given` is the argument, `line` the library's line that converts it."""

    given: ExprAt
    tensor: torch.Tensor
    line: Place


def is_behind_library(scene: Scene) -> bool:
    """Whether the user's line led to torch by way of other code."""
    first, frames = entered(scene), scene.incident.frames
    return first is not None and not all(map(_is_passed_through, frames[frames.index(first) :]))


def taken_in_library(scene: Scene, call: ExprAt) -> TakenInLibrary | None:
    """None where the number is not that of an argument of the call, or nothing is recorded: what
    the library asks of values of its own is its affair."""
    if not torch.is_grad_enabled():
        return None
    live = scene.incident.frames[-1]
    source = library_source(live.filename)
    node = expression_at(source, live)
    asked = node.args[0] if isinstance(node, ast.Call) and node.args else None
    tensor = in_frame(asked, live.frame)
    if node is None or not is_a(tensor, torch.Tensor) or not tensor.requires_grad:
        return None
    line = source.place(node.lineno, live.function, node)
    spots = (s for s, value in arguments_handed(scene, call) if value is tensor)
    return next((TakenInLibrary(s, tensor, line) for s in spots), None)


def _is_passed_through(live: LiveFrame) -> bool:
    return str(live.frame.f_globals.get("__name__", "")).partition(".")[0] in _PASSED_THROUGH
