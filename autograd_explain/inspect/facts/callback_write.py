"""The one in-place write of a program to what a library hands to a function of it.

No run of the source gets to a hook, or to a method that a library calls: what is written there is
concluded from nothing else in the program being able to write.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...arguments import parameters, values_given
from ...program import Function, Source, called_name, last_name
from ..dataflow.syntax import taken_apart
from ..history import TraceEvent
from ..scene import Scene
from .statements import SourceWrite, base_of, writes_in


def write_in_callback(scene: Scene) -> TraceEvent | None:
    """None where a function that the program does not call itself writes to something else, too,
    or several do.  What makes a batch writes before anything is saved."""
    calls = [call for _, call in scene.index.nodes(ast.Call)]
    before = {called_name(call) for call in calls}
    before |= {n for call in calls for n in _handed_to_loader(call)}
    found = [w for w in _writes(scene) if w[1].name not in before]
    if len(found) != 1:
        return None
    ((source, function, write),) = found
    if not isinstance(write.target, ast.Name) or write.target.id not in _handed_in(function):
        return None
    place = source.place(write.statement.lineno, function.name, write.statement)
    return TraceEvent(0, place, write.op, target=write.target_text)


def _handed_to_loader(call: ast.Call) -> list[str]:
    """The functions that a DataLoader gets (`collate_fn=…`)."""
    if called_name(call) != "DataLoader":
        return []
    return [last_name(value) for value in values_given(call)]


def _writes(scene: Scene) -> Iterator[tuple[Source, Function, SourceWrite]]:
    for source, write in writes_in(scene.index):
        function = source.function_around(write.statement)
        if function is not None and (
            function.name == "__call__" or not function.name.startswith("__")
        ):
            yield source, function, write


def _handed_in(function: Function) -> frozenset[str]:
    """The names of a function's arguments and of what it takes out of them: `x` of `x, = args`."""
    found = set(parameters(function)) - {"self", "cls"}
    for node in ast.walk(function):
        for target, value in _assigned(node):
            base = base_of(value)
            if isinstance(base, ast.Name) and base.id in found:
                found |= {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}
    return frozenset(found)


def _assigned(node: ast.AST) -> list[tuple[ast.expr, ast.expr]]:
    if not isinstance(node, ast.Assign):
        return []
    return [pair for target in node.targets for pair in taken_apart(target, node.value)]
