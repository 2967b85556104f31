"""What the user's call handed to a library, from the first frame inside that library.

`np.polyval(calib.coefficients, xs)` runs a property and a method call of the library's; their
values have no name in the notebook, but NumPy's `polyval(p, x)` holds them as its parameters.
"""

from __future__ import annotations

import ast
import inspect
from typing import Any

from ...arguments import given_by
from ...incident import LiveFrame
from ..dataflow import ExprAt
from ..scene import Scene


def handed(scene: Scene, call: ExprAt) -> dict[int, Any]:
    """The values of a call's arguments by the identity of their nodes (a starred one: the part of
    it that was taken); {} where the library's function is not written in Python."""
    frame = entered(scene)
    if frame is None or not isinstance(call.node, ast.Call) or not _takes_arguments(frame):
        return {}
    positional, named = _parameters(frame)
    starred = next((i for i, a in enumerate(call.node.args) if isinstance(a, ast.Starred)), None)
    found = {
        id(node): value for node, value in zip(call.node.args[:starred], positional, strict=False)
    }
    if starred is not None and starred == len(call.node.args) - 1:
        found[id(call.node.args[starred])] = positional[starred:]
    for keyword in call.node.keywords:
        if keyword.arg in named:
            found[id(keyword.value)] = named[keyword.arg]
    return found


def _takes_arguments(frame: LiveFrame) -> bool:
    """Torch's own `__array__` was called from C: its parameters are not the user's arguments, as
    those of a module's `__call__` are."""
    file = frame.filename.replace("\\", "/")
    return "torch/" not in file or file.endswith("torch/nn/modules/module.py")


def arguments_handed(scene: Scene, call: ExprAt) -> list[tuple[ExprAt, Any]]:
    """A call's arguments with their values: those of an expression that computes are in the
    library's first frame."""
    values = handed(scene, call)
    nodes = given_by(call.node) if isinstance(call.node, ast.Call) else []
    spots = [call.inside(node) for _, node in nodes]
    return [(s, values.get(id(s.node), scene.slicer.value(s))) for s in spots]


def entered(scene: Scene) -> LiveFrame | None:
    """The frame that the innermost of the user's frames called into."""
    user = scene.incident.user_frames
    frames = scene.incident.frames
    if not user or frames[-1] is user[-1]:
        return None
    return frames[frames.index(user[-1]) + 1]


def _parameters(live: LiveFrame) -> tuple[list[Any], dict[str, Any]]:
    """A frame's positional parameters in order (`self` left out) and all of them by name."""
    code, values = live.frame.f_code, live.frame.f_locals
    plain = list(code.co_varnames[: code.co_argcount])
    rest = list(code.co_varnames[code.co_argcount + code.co_kwonlyargcount :])
    named = {n: values[n] for n in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
             if n in values}  # fmt: skip
    if plain[:1] in (["self"], ["cls"]):
        plain = plain[1:]
    positional = [values.get(n) for n in plain]
    if code.co_flags & inspect.CO_VARARGS:
        positional += values.get(rest.pop(0), ())
    if code.co_flags & inspect.CO_VARKEYWORDS:
        named = {**values.get(rest.pop(0), {}), **named}
    return positional, named
