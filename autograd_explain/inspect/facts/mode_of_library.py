"""A library that runs operations with gradient recording off, as its frames show it: of the user's
code that it called back, or its own."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from ...arguments import parameters, values_given
from ...incident import LiveFrame
from ...model import Place
from ...program import Source, called_name, is_installed, last_name, library_source
from ...program_index import index_of
from ..dataflow.grad_mode import turned_on_around
from ..dataflow.safe_lookup import MISSING, evaluate
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
        kind, line = ("", None) if i in own else _around_frame(frames[i])
        call = scene.incident.place_of(frames[max(n for n in own if n < i)]) if kind else None
        if call is None or line is None:
            continue
        if kind in _MAY_RECORD:
            enabled = True
        elif kind == "inference_mode" or not enabled:
            return LibraryMode(call, line, kind == "inference_mode", enabled)
    return None


def _around_frame(frame: LiveFrame) -> tuple[str, Place | None]:
    return mode_around(frame.filename, frame.line, frame.function, frame.frame.f_locals)


def mode_around(
    filename: str, line: int, function: str, values: Mapping[str, Any]
) -> tuple[str, Place | None]:
    """What sets the mode in the block of a library, or the decorated function, that a line stands
    in, `values` being its locals; "" where nothing does."""
    if not is_installed(filename):
        return "", None
    source = library_source(filename)
    for node in source.nodes:
        if isinstance(node, _HEADED) and node.lineno <= line <= (node.end_lineno or 0):
            own = not isinstance(node, ast.FunctionDef) or node.name == function
            heads = _heads(node) if own else ()
            kind, head = next(((k, h) for h in heads if (k := _kind(h, values))), ("", node))
            if kind:
                text = linecache.getline(filename, head.lineno).strip()
                return kind, Place(None, filename, head.lineno, text, function)
    return "", None


_HEADED = (ast.With, ast.FunctionDef)


def _heads(node: ast.With | ast.FunctionDef) -> list[ast.expr]:
    if isinstance(node, ast.FunctionDef):
        return node.decorator_list
    return [item.context_expr for item in node.items]


def _kind(manager: ast.expr, values: Mapping[str, Any]) -> str:
    """`torch.no_grad()`, and `switch()` where a local name holds `torch.no_grad` or a method of an
    object of it; `set_grad_enabled(self.trains)` is what it was given, where that is known."""
    if not isinstance(manager, ast.Call):
        return ""
    name = called_name(manager)
    if isinstance(manager.func, ast.Name) and name in values:
        held = values[name]
        owner = getattr(held, "__self__", None)
        return next((k for c, k in _MODES.items() if held is c or type(owner) is c), "")
    given = values_given(manager)
    if name not in ("inference_mode", "set_grad_enabled") or not given:
        return name if name in _MODES.values() else ""
    said = evaluate(given[0], lambda n: values.get(n.id, MISSING))
    if type(said) is not bool:
        return "set_grad_enabled"
    records = said is (name == "set_grad_enabled")
    return "enable_grad" if records else _OFF_BY[name]


_OFF_BY = {"inference_mode": "inference_mode", "set_grad_enabled": "no_grad"}


def options_behind(scene: Scene, line: Place | None) -> tuple[tuple[Place, str], ...]:
    """The option `name=True` of the program's by which a library comes by one of its lines, or
    turns recording off there: of `with set_grad_enabled(not self.shared)`, `if self.stop: h =
    h.detach()`; () where several calls have one of that name."""
    if line is None or line.file is None:
        return ()
    source = library_source(line.file)
    nodes = source.nodes_from.get(line.line, ())
    names = {n for node in nodes for n in {*_asked(source, node)} & {*_taken(source, node)}}
    for name in sorted(names):
        given = [
            (s, call)
            for s, call in index_of(scene.program).nodes(ast.Call, naming=(name,))
            for k in call.keywords
            if k.arg == name and isinstance(k.value, ast.Constant) and k.value.value is True
        ]
        if len(given) == 1:
            return ((scene.slicer.place(scene.slicer.at(*given[0])), name),)
    return ()


def _taken(source: Source, node: ast.AST) -> Iterator[str]:
    """What the function around takes, and what objects of its class are made with."""
    for around in source.around(node):
        inside = around.body if isinstance(around, ast.ClassDef) else [around]
        for function in inside:
            made = around is function or getattr(function, "name", "") == "__init__"
            if isinstance(function, ast.FunctionDef) and made:
                yield from parameters(function)


def _asked(source: Source, node: ast.AST) -> Iterator[str]:
    """The names by whose truth a statement runs, and a block turns recording off."""
    heads = _heads(node) if isinstance(node, ast.With) else []
    for manager in heads:
        enabled = isinstance(manager, ast.Call) and called_name(manager) == "set_grad_enabled"
        for given in manager.args if isinstance(manager, ast.Call) and enabled else ():
            yield from _true_for(given, False)
    inner = node
    for around in source.around(node):
        if isinstance(around, ast.FunctionDef):
            return
        if isinstance(around, (ast.If, ast.IfExp)) and inner is not around.test:
            body = around.body if isinstance(around.body, list) else [around.body]
            yield from _true_for(around.test, inner in body)
        inner = around


def _true_for(test: ast.expr, outcome: bool) -> Iterator[str]:
    """The names that a condition has an outcome by being true, alone or with others."""
    if isinstance(test, (ast.Name, ast.Attribute)) and outcome:
        yield last_name(test)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _true_for(test.operand, not outcome)
    elif isinstance(test, ast.BoolOp):
        for value in test.values:
            yield from _true_for(value, outcome)
