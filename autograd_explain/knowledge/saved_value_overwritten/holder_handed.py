"""What keeps the memory that one call saved and a later one wrote: an object that both were handed
or whose methods both are, which is gone by the time of the failure and so gives the tensor no live
name."""

from __future__ import annotations

import ast
import sys
import types
from collections.abc import Iterator

import torch

from autograd_explain.inspect.dataflow.reaching_definitions import key_of
from autograd_explain.inspect.facts.expressions import expression_at
from autograd_explain.inspect.facts.overwrite import Overwrite
from autograd_explain.inspect.facts.statements import write_of
from autograd_explain.inspect.history import TraceEvent
from autograd_explain.inspect.scene import Scene
from autograd_explain.isolation.type_checks import is_a
from autograd_explain.program import is_of_package, library_source


def holder_handed(scene: Scene, overwrite: Overwrite) -> str:
    """The one object of a library's that both the saving and the writing call were handed, where
    its class stands beside such a write, or whose methods both are (`camera.project(x)` and
    `camera.scale_(2)`); "" where there is none, or several."""
    saver, writer = overwrite.maker, overwrite.guilty
    if saver is None or writer is None:
        return ""
    held = [{*_objects_handed(scene, event, writer.op)} for event in (saver, writer)]
    common = held[0] & held[1]
    if common:
        return common.pop()[0] if len(common) == 1 else ""
    owner = _called(scene, saver)
    return owner[0] if owner is not None and owner == _called(scene, writer) else ""


def _called(scene: Scene, event: TraceEvent) -> tuple[str, object] | None:
    """The object whose method a line of the user's called, where a library did the rest, with the
    function that the line stands in."""
    spot = expression_at(scene, event.place)
    owner = None if spot is None else spot.receiver
    if owner is None or key_of(owner.node) is None or event.inside is None:
        return None
    if owner.text == "self":  # `self.layer(x)` is no method of a library's
        return None
    known = is_a(scene.slicer.value(owner), (types.ModuleType, type, torch.nn.Module))
    return None if known else (owner.text, event.place.function_id)


def _objects_handed(scene: Scene, event: TraceEvent, op: str) -> Iterator[tuple[str, int]]:
    """The names among the operands of a call for what one call of a class of a library's has made,
    each with that; of classes whose library writes by `op`."""
    at = event.place
    source, statement = scene.program.source_at(at), scene.program.statement_at(at)
    for node in () if source is None or statement is None else ast.walk(statement):
        if source is not None and isinstance(node, ast.Name) and node.id in event.operands:
            makers = scene.slicer.makers(scene.slicer.at(source, node))
            made = [None if m.callable is None else scene.slicer.value(m.callable) for m in makers]
            if len(made) == 1 and is_a(made[0], type) and _keeps(made[0], op):
                yield node.id, id(makers[0].node)


def _keeps(kind: type, op: str) -> bool:
    """Whether a class of a library's, whose objects are no modules, stands beside such a write."""
    if not is_of_package(kind) or issubclass(kind, (torch.Tensor, torch.nn.Module)):
        return False
    source = library_source(str(sys.modules[kind.__module__].__file__))
    statements = (n for n in source.nodes if isinstance(n, ast.stmt))
    return any(w.op == op for w in map(write_of, statements) if w is not None)
