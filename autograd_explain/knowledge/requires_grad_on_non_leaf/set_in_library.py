"""A flag that a library sets on what the user's call handed to it, or on a view of that."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

import torch

from autograd_explain.incident import LiveFrame
from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.dataflow.safe_lookup import in_frame
from autograd_explain.inspect.facts.handed_to_library import arguments_handed
from autograd_explain.inspect.scene import Scene
from autograd_explain.isolation.type_checks import is_a, table_of
from autograd_explain.model import Place
from autograd_explain.nodes import start_of
from autograd_explain.program import Source, is_installed, library_source

from .computed_weight import flag_set

_MANY = 10_000  #: operations between what was handed over and what has its flag set


@dataclass(frozen=True, eq=False)
class SetInLibrary:
    """`given` is the argument whose graph makes it a result, `line` the library's line, `wanted`
    what that sets the flag to; `switch` is a statement that keeps the library from it, "" where
    its source shows none."""

    given: ExprAt
    tensor: torch.Tensor
    line: Place
    wanted: ast.expr | None
    switch: str


def set_in_library(scene: Scene) -> SetInLibrary | None:
    """None where the user's frames failed themselves, or where the library's own parameters have
    made it a result."""
    live, call = scene.incident.frames[-1], scene.surfaced
    if call is None or not isinstance(call.node, ast.Call) or not is_installed(live.filename):
        return None
    source = library_source(live.filename)
    statement = source.statement_at(live.line)
    found = flag_set(statement)
    tensor = None if found is None else in_frame(found[0], live.frame)
    if statement is None or found is None or not is_a(tensor, torch.Tensor) or tensor.is_leaf:
        return None
    handed = [(s, v) for s, v in arguments_handed(scene, call) if is_a(v, torch.Tensor)]
    handed = [(s, v) for s, v in handed if v.requires_grad and not v.is_leaf]
    if not _is_made_from(tensor, [v for _, v in handed]) or len(handed) != 1:
        return None
    (given, value), line = handed[0], source.place(live.line, live.function, statement)
    return SetInLibrary(given, value, line, found[1], _switch(scene, call, live, source, statement))


def _is_made_from(result: torch.Tensor, values: list[torch.Tensor]) -> bool:
    """Whether all of a result's graph comes from some values: were they leaves without one, it
    would be a leaf, too."""
    ends, seen = {start_of(v) for v in values}, set[object]()
    pending = [start_of(result)]
    while pending and len(seen) < _MANY:
        node = pending.pop()
        if node is None or node in ends or node in seen:
            continue
        if hasattr(node, "variable"):
            return False
        seen.add(node)
        pending += [following for following, _ in node.next_functions]
    return bool(ends) and not pending


def _switch(
    scene: Scene, call: ExprAt, live: LiveFrame, source: Source, statement: ast.stmt
) -> str:
    """`net.encoder.sets_flag = False` for `if self.sets_flag and self.training:` around the line,
    where nothing else hangs on it."""
    around = source.parents.get(statement)
    if not isinstance(around, ast.If) or around.body != [statement] or around.orelse:
        return ""
    test = around.test
    conjuncts = test.values if isinstance(test, ast.BoolOp) else [test]
    if isinstance(test, ast.BoolOp) and not isinstance(test.op, ast.And):
        return ""
    for part in conjuncts:
        if isinstance(part, ast.Attribute) and _is_read_once(source, part.attr):
            owner: Any = in_frame(part.value, live.frame)
            path = _path(scene, call, owner)
            if path and table_of(owner).get(part.attr) is True:
                return f"{path}.{part.attr} = False\n"
    return ""


def _is_read_once(source: Source, name: str) -> bool:
    """Whether a file sets an attribute and asks for it in one place only."""
    nodes = [n for n in source.nodes if isinstance(n, ast.Attribute) and n.attr == name]
    reads = sum(isinstance(n.ctx, ast.Load) for n in nodes)
    return reads == 1 and len(nodes) > 1


def _path(scene: Scene, call: ExprAt, owner: Any) -> str:
    """How the user's line can name a module inside the one that it calls; "" where it cannot."""
    for root in (call.callable, call.receiver):
        module = None if root is None else scene.slicer.value(root)
        if root is None or not is_a(module, torch.nn.Module) or "(" in root.text:
            continue
        for name, inner in module.named_modules():
            if inner is owner:
                plain = all(part.isidentifier() for part in name.split(".")) or not name
                inside = f".{name}" if name else ""
                return root.text + (inside if plain else f'.get_submodule("{name}")')
    return ""
