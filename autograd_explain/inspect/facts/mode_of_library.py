"""A library that called the user's code back with gradient recording off, as its frames show it."""

from __future__ import annotations

import ast
import linecache
from dataclasses import dataclass

import torch

from ...incident import LiveFrame
from ...model import Place
from ...program import Source, called_name, is_installed
from ..dataflow.grad_mode import turned_on_around
from ..scene import Scene

_MODES = {
    torch.no_grad: "no_grad",
    torch.inference_mode: "inference_mode",
    torch.enable_grad: "enable_grad",
    torch.set_grad_enabled: "set_grad_enabled",
}
_MAY_RECORD = ("enable_grad", "set_grad_enabled")


@dataclass(frozen=True)
class LibraryMode:
    """`call` is the user's line that called the library, `line` the library's that turned recording
    off; `enabled` says that it may be on again further in, which inference mode ignores."""

    call: Place
    line: Place
    inference: bool
    enabled: bool


def off_in_library(scene: Scene) -> LibraryMode | None:
    """The block of a library around the innermost of its calls of the user's code."""
    frames = scene.incident.frames
    own = [i for i, f in enumerate(frames) if scene.program.source_of(f.code) is not None]
    enabled = scene.surfaced is not None and turned_on_around(scene.slicer, scene.surfaced)
    for i in reversed(range(own[0] + 1, own[-1]) if own else ()):
        kind, line = ("", None) if i in own else _mode_around(frames[i])
        call = scene.incident.place_of(frames[max(n for n in own if n < i)]) if kind else None
        if call is None or line is None:
            continue
        if kind in _MAY_RECORD:
            enabled = True
        elif kind == "inference_mode" or not enabled:
            return LibraryMode(call, line, kind == "inference_mode", enabled)
    return None


def _mode_around(frame: LiveFrame) -> tuple[str, Place | None]:
    """What sets the mode in the block that a frame stands in; "" where nothing does."""
    if not is_installed(frame.filename):
        return "", None
    text = "".join(linecache.getlines(frame.filename))
    source = Source(None, frame.filename, text, text, frame.filename)
    for node in source.nodes:
        if isinstance(node, ast.With) and node.lineno <= frame.line <= (node.end_lineno or 0):
            kind = next(filter(None, (_kind(i.context_expr, frame) for i in node.items)), "")
            if kind:
                line = linecache.getline(frame.filename, node.lineno).strip()
                return kind, Place(None, frame.filename, node.lineno, line, frame.function)
    return "", None


def _kind(manager: ast.expr, frame: LiveFrame) -> str:
    """`torch.no_grad()`, and `switch()` where a local name holds `torch.no_grad` or a method of an
    object of it."""
    if not isinstance(manager, ast.Call):
        return ""
    name = called_name(manager)
    if isinstance(manager.func, ast.Name) and name in frame.frame.f_locals:
        held = frame.frame.f_locals[name]
        owner = getattr(held, "__self__", None)
        return next((k for c, k in _MODES.items() if held is c or type(owner) is c), "")
    if name == "inference_mode" and (manager.args or manager.keywords):
        return "set_grad_enabled"  # what it was given decides
    return name if name in _MODES.values() else ""
