"""Which statement put a value into a container, and the expression of the value there.

`queue.append(z)`, `seen[user] = z`, `targets = [gram(f) for f in maps]`, `replay.push(state=h)`
where `push` appends its `**item`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...arguments import bound_arguments
from ...model import Place
from ...program import Source, expression_of, last_name
from ...program_index import Definition, ProgramIndex
from ..dataflow.safe_lookup import MISSING, evaluate, in_frame
from ..dataflow.syntax import PUTS, container_of
from ..scene import Scene

_KEY = re.compile(r"\[([^\[\]]*)\]|\.(\w+)")
_DEPTH = 3


@dataclass(frozen=True, eq=False)
class Store:
    """`value` is what a container (or a part of what it holds) gets, in a statement of `source`."""

    source: Source
    value: ast.expr

    @property
    def place(self) -> Place:
        return self.source.place(self.value.lineno, None, self.value)


def put_of(scene: Scene, name: str) -> tuple[str, Store] | None:
    """The container in a path (`bank.rows[0][1]`, `replay.items[3]['state']`), and the one
    statement that puts there what the path leads to; None where several do or none is seen."""
    for bracket in re.finditer(r"\[", name):
        container = name[: bracket.start()]
        keys = [a or repr(b) for a, b in _KEY.findall(name[bracket.start() :])]
        owner, _, attribute = container.rpartition(".")
        found = list(_puts(scene, live_object(scene, owner), attribute, keys))
        if len(found) == 1:
            return None if _is_unpacked(scene, container) else (container, found[0])
    return None


def _is_unpacked(scene: Scene, container: str) -> bool:
    """Whether a statement gives the container's name what it unpacks: `out, states = step(x)`."""
    unpacked = (
        leaf
        for _, node in scene.index.nodes(ast.Assign)
        for target in node.targets
        for leaf in getattr(target, "elts", ())
    )
    return any(ast.unparse(leaf) == container for leaf in unpacked)


def live_object(scene: Scene, path: str) -> Any:
    """The object that a path leads to from the failing line, if any, or else from the user's
    names."""
    names, node = scene.incident.namespace, expression_of(path)
    frames = scene.incident.user_frames[-1:]
    found = in_frame(node, frames[0].frame) if frames else MISSING
    if node is None or found is not MISSING:
        return found
    return evaluate(node, lambda name: names.get(name.id, MISSING))


def _puts(scene: Scene, owner: Any, name: str, keys: list[str]) -> Iterator[Store]:
    foreign = foreign_to(scene.index, owner)
    for source, node in scene.index.nodes(ast.stmt):
        if isinstance(node, (ast.Expr, ast.Assign)) and not _is_of_self(node, foreign):
            for value, rest in _given(node, name, keys):
                put = _part(scene.index, Store(source, value), rest, _DEPTH)
                if put is not None:
                    yield put


def foreign_to(index: ProgramIndex, owner: Any) -> frozenset[ast.AST]:
    """What stands in the classes that the container's owner is no object of."""
    if owner is MISSING:
        return frozenset()
    classes = [node for _, node in index.nodes(ast.ClassDef)]
    others = {node for node in classes if not index.is_class(type(owner), node)}
    innermost = {inside: node for node in classes for inside in ast.walk(node)}  # outer ones first
    return frozenset(inside for inside, node in innermost.items() if node in others)


def _is_of_self(node: ast.stmt, within: frozenset[ast.AST]) -> bool:
    """Whether a statement that stands within is about `self`."""
    return node in within and any(getattr(n, "id", "") == "self" for n in ast.walk(node))


def _given(
    node: ast.Expr | ast.Assign, name: str, keys: list[str]
) -> Iterator[tuple[ast.expr, list[str]]]:
    """What a statement puts into the container of this name, and the keys that lead on."""
    if isinstance(node, ast.Expr):
        call = node.value if isinstance(node.value, ast.Call) else None
        method = call.func if call is not None and isinstance(call.func, ast.Attribute) else None
        if call is not None and method is not None and method.attr in PUTS and call.args:
            if _named(method.value, name):
                yield call.args[-1], keys[1 + _depth(method.value) :]
        return
    target, value = node.targets[0], node.value
    if isinstance(target, ast.Subscript) and _named(target, name):
        if _may_lead(target, keys):
            yield value, keys[_depth(target) :]
    elif not isinstance(target, ast.Subscript) and _named(target, name):
        inner = value.args[0] if isinstance(value, ast.Call) and len(value.args) == 1 else value
        if isinstance(inner, (ast.ListComp, ast.GeneratorExp)):
            yield inner.elt, keys[1:]
        elif isinstance(value, ast.DictComp):
            yield value.value, keys[1:]
        elif isinstance(value, (ast.List, ast.Tuple, ast.Dict, ast.Call)) and not _is_empty(value):
            yield value, keys


def _named(node: ast.expr, name: str) -> bool:
    return last_name(container_of(node)) == name


def _may_lead(target: ast.Subscript, keys: list[str]) -> bool:
    """Whether an item is on the way that the keys lead: `["return"]` is not for `["log_prob"]`."""
    at, key = _depth(target) - 1, target.slice
    return not isinstance(key, ast.Constant) or keys[at : at + 1] in ([], [repr(key.value)])


def _depth(node: ast.expr) -> int:
    return 1 + _depth(node.value) if isinstance(node, ast.Subscript) else 0


def _is_empty(value: ast.expr) -> bool:
    return not getattr(value, "values", getattr(value, "elts", (value,)))


def _part(index: ProgramIndex, put: Store, keys: list[str], depth: int) -> Store | None:
    """The element meant of a tuple, a dict or an argument that is put in as a whole."""
    if not keys:
        return put
    value = _element(put.value, keys[0])
    if value is not None:
        return _part(index, Store(put.source, value), keys[1:], depth)
    if isinstance(put.value, ast.Name) and depth:
        return _argument(index, put, keys, depth - 1)
    if isinstance(put.value, ast.Call) and depth:
        function = index.called(put.source, put.value)
        returned = None if function is None else _returned(function)
        return None if returned is None else _part(index, returned, keys, depth - 1)
    return None


def _returned(function: Definition) -> Store | None:
    """What a function returns, where that is one display."""
    values = function.returned
    shown = len(values) == 1 and isinstance(values[0], (ast.Dict, ast.Tuple, ast.List, ast.Call))
    return Store(function.source, values[0]) if shown else None


def _element(value: ast.expr, key: str) -> ast.expr | None:
    found: list[ast.expr] = []
    if isinstance(value, (ast.Tuple, ast.List)):
        found = value.elts[int(key) : int(key) + 1] if key.isdigit() else []
    elif isinstance(value, ast.Dict):
        pairs = zip(value.keys, value.values, strict=True)
        found = [v for k, v in pairs if isinstance(k, ast.Constant) and repr(k.value) == key]
    elif isinstance(value, ast.Call):  # `dict(h=h)`, a named tuple, a dataclass
        found = [k.value for k in value.keywords if repr(k.arg) == key]
    return found[0] if len(found) == 1 else None


def _argument(index: ProgramIndex, put: Store, keys: list[str], depth: int) -> Store | None:
    """What the one call of the function around hands over as the name (or among its `**name`)."""
    name = put.value.id if isinstance(put.value, ast.Name) else ""
    function = put.source.function_around(put.value)
    if function is None:
        return None
    arguments = function.args
    calls = list(index.calls_of(function.name))
    if len(calls) != 1:
        return None
    source, call = calls[0]
    if arguments.kwarg is not None and arguments.kwarg.arg == name:
        given, rest = [k.value for k in call.keywords if repr(k.arg) == keys[0]], keys[1:]
    else:
        bound = bound_arguments(function, call)
        given, rest = [bound[name]] if name in bound else [], keys
    return _part(index, Store(source, given[0]), rest, depth) if len(given) == 1 else None
