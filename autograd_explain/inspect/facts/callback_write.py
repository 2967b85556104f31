"""The one in-place write of a program to what a library hands to a function of it.

No run of the source gets to a hook, or to a method that a library calls: what is written there is
concluded from nothing else in the program being able to write.  What such a function computes, or
has computed by what it is handed, and then keeps where the overwritten tensor still lives, is told
by that.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator

from ...arguments import parameters, values_given
from ...program import Function, Source, called_name, last_name
from ..dataflow.syntax import taken_apart
from ..history import TraceEvent
from ..live.graph import SavedTensor
from ..live.names import without_item
from ..scene import Scene
from .handed_write import Handed
from .statements import SourceWrite, base_of, writes_in


def write_in_callback(scene: Scene, saved: SavedTensor) -> Handed:
    """Nothing where a function that the program does not call itself writes to something else, too,
    or several do.  What makes a batch writes before anything is saved."""
    calls = [call for _, call in scene.index.nodes(ast.Call)]
    before = {called_name(call) for call in calls}
    before |= {n for call in calls for n in _handed_to_loader(call)}
    found = [w for w in _writes(scene) if w[1].name not in before]
    if len(found) != 1:
        return Handed()
    ((source, function, write),) = found
    name = write.target.id if isinstance(write.target, ast.Name) else ""
    live = (*scene.names.of(saved.tensor), *scene.names.of_aliases(saved.tensor))
    kept = {without_item(n).rpartition(".")[2] for n in live}
    keeps = name != "" and _keeps(function, name, kept)
    if not keeps and name not in _handed_in(function):
        return Handed()
    place = source.place(write.statement.lineno, function.name, write.statement)
    made = _call_giving(function, name) if keeps and saved.name == "result" else None
    at = None if made is None else source.place(made.lineno, function.name, made)
    saver = None if at is None else TraceEvent(0, at, saved.node.name)
    return Handed((TraceEvent(0, place, write.op, target=write.target_text),), saver)


def _keeps(function: Function, name: str, kept: Collection[str]) -> bool:
    """Whether a function puts what it calls `name` under one of the names: `self.maps.append(p)`,
    `self.last = p`."""
    for node in ast.walk(function):
        pairs = [pair for pair in _assigned(node) if not isinstance(pair[0], ast.Name)]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            pairs += [(node.func.value, value) for value in node.args]
        for holder, value in pairs:
            words = re.findall(r"\w+", ast.unparse(holder))
            if ast.unparse(value) == name and not set(words).isdisjoint(kept):
                return True
    return False


def _call_giving(function: Function, name: str) -> ast.Call | None:
    """The one call that gives a name its value in a function."""
    pairs = (pair for node in ast.walk(function) for pair in _assigned(node))
    given = [value for target, value in pairs if ast.unparse(target) == name]
    return given[0] if len(given) == 1 and isinstance(given[0], ast.Call) else None


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
