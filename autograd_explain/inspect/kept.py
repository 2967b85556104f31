"""Values that go on living with their graph: in a container, or after they went backward."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import torch

from ..model import Place
from ..program import Source
from .bound import Values, assigned_names, bound_place
from .definitions import own_nodes
from .freed import FreedPart
from .graph import GraphNode
from .scene import Scene
from .statements import statement_at

_PUTS = frozenset({"append", "appendleft", "add", "insert", "push", "put", "enqueue"})
_KEYS = re.compile(r"\[([^\[\]]*)\]")
_MANY = 2_000


@dataclass(frozen=True)
class Stored:
    """A statement that puts a value into a container: `self.items.append(z)`.

    `place` has the span of the value; `read_again` tells that values of the failing round are
    read out of the container too, so that it is no mere memory of earlier rounds.
    """

    place: Place
    value: str
    read_again: bool


def stored(scene: Scene, part: FreedPart) -> Stored | None:
    """Where the container that holds the old value got it; None where that is not one statement."""
    container, keys = _container(scene, part)
    puts = list(_puts(scene, container.rpartition(".")[2])) if container else []
    if len(puts) != 1:
        return None
    source, statement, value = puts[0]
    value = _part(value, keys[1:])
    place = source.place(statement.lineno, None, value)
    return Stored(place, ast.unparse(value), _read_again(scene, part, container))


def _container(scene: Scene, part: FreedPart) -> tuple[str, list[str]]:
    """The container of the old value as it is named, and the keys that lead to it: of the live
    tensor, else as the line that reads it is spelled (`seen[user]`)."""
    names = scene.names.of(part.carrier.tensor) if part.carrier is not None else ()
    user = None if part.user is None else scene.history.maker(part.user)
    spelled = () if user is None or part.carrier is not None else user.operands
    for name in (*names, *spelled):
        container = re.sub(r"(\[[^\[\]]*\])+$", "", name)
        if container != name:
            return container, _KEYS.findall(name[len(container) :])
    return "", []


def _puts(scene: Scene, name: str) -> Iterator[tuple[Source, ast.stmt, ast.expr]]:
    """The statements that put something into a container of this name, with what they put in."""
    for source in scene.program.cells:
        for node in ast.walk(source.tree):
            if isinstance(node, ast.stmt):
                value = _put(node, name)
                if value is not None:
                    yield source, node, value


def _put(node: ast.stmt, name: str) -> ast.expr | None:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        call = node.value
        method = call.func if isinstance(call.func, ast.Attribute) else None
        if method is not None and method.attr in _PUTS and call.args:
            return call.args[-1] if _named(method.value, name) else None
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        return node.value if _named(node.targets[0].value, name) else None
    return None


def _named(node: ast.expr, name: str) -> bool:
    while isinstance(node, ast.Subscript):
        node = node.value
    return getattr(node, "attr", getattr(node, "id", "")) == name


def _part(value: ast.expr, keys: list[str]) -> ast.expr:
    """The element meant of a tuple or a dict that is put in as a whole."""
    for key in keys:
        if isinstance(value, ast.Tuple) and key.isdigit() and int(key) < len(value.elts):
            value = value.elts[int(key)]
        elif isinstance(value, ast.Dict):
            found = [v for k, v in zip(value.keys, value.values, strict=True) if _is(k, key)]
            value = found[0] if len(found) == 1 else value
    return value


def _is(key: ast.expr | None, text: str) -> bool:
    return isinstance(key, ast.Constant) and repr(key.value) == text


def _read_again(scene: Scene, part: FreedPart, container: str) -> bool:
    """Whether a statement that reads old values out of the container reads new ones there too."""
    old = {id(n.node) for n in part.old}
    before, now = set(_readers(scene, part.boundary, old)), set()
    for named in scene.names.tensors:
        if not named.name.startswith(container + "["):
            continue
        node = None if named.tensor.is_leaf else scene.graph.find(named.tensor.grad_fn)
        if node is not None and id(node.node) in old:
            before |= set(_readers(scene, node, old))
        elif node is not None:
            now |= set(_readers(scene, node, old, _own_names(scene, node)))
    return not before or bool(before & now)


def _own_names(scene: Scene, node: GraphNode) -> tuple[str, ...]:
    """The names that a value has besides its place in the container."""
    maker = scene.history.maker(node)
    return () if maker is None else assigned_names(scene, bound_place(scene, maker)[-1])


def _readers(
    scene: Scene, node: GraphNode, old: set[int], own: tuple[str, ...] = ()
) -> Iterator[tuple[object, ...]]:
    """The lines of new nodes that use this one's value, those left out that name it themselves."""
    for parent in scene.graph.parents(node):
        maker = None if id(parent.node) in old else scene.history.maker(parent)
        read = "" if maker is None else " ".join(maker.operands)
        if maker is not None and not any(_mentions(read, name) for name in own):
            yield maker.place.cell, maker.place.file, maker.place.line


def _mentions(code: str, name: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", code) is not None


def spent(scene: Scene, needed: Iterable[GraphNode]) -> tuple[Place, str] | None:
    """Where a value that went backward already is kept, and its name: `curve.append(loss)`.

    None unless cutting it there leads past all the `needed` nodes and leaves something else to go
    backward to.
    """
    forbidden = {id(n.node) for n in needed}
    calls = [m for m in scene.history.steps if m.op == "backward" and m.operands]
    seen = set()
    for call in reversed(calls):
        name = call.operands[0]
        where = call.place.cell, call.place.file, call.place.line
        if where in seen or not name.isidentifier():
            continue
        seen.add(where)
        places = list(_keepers(scene, call.place, name))
        if len(places) == 1 and _cuts_off(scene, call.place, name, forbidden):
            return places[0], name
    return None


def _keepers(scene: Scene, call: Place, name: str) -> Iterator[Place]:
    """The statements of the function around a backward that keep the value it went from."""
    source = scene.program.source_at(call)
    statement = statement_at(scene.program, call)
    if source is None or statement is None:
        return
    scopes = [n for n in ast.walk(source.tree) if isinstance(n, (ast.FunctionDef, ast.Module))]
    scope = next((s for s in scopes if any(n is statement for n in own_nodes(s))), source.tree)
    for node in own_nodes(scope):
        if isinstance(node, ast.stmt) and _keeps(node, name):
            yield source.place(node.lineno, call.function, node)


def _keeps(node: ast.stmt, name: str) -> bool:
    if isinstance(node, ast.AugAssign):
        return isinstance(node.op, ast.Add) and _is_name(node.value, name)
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        return _is_name(node.value, name)
    call = node.value if isinstance(node, ast.Expr) else None
    method = call.func if isinstance(call, ast.Call) else None
    puts = isinstance(method, ast.Attribute) and method.attr in _PUTS
    return puts and isinstance(call, ast.Call) and any(_is_name(a, name) for a in call.args[-1:])


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _cuts_off(scene: Scene, call: Place, name: str, forbidden: set[int]) -> bool:
    """Whether no forbidden node is reached past the values of this name, but some leaf is."""
    values = Values(scene, name, call)
    todo = [n for r in scene.roots if (n := scene.graph.find(r.grad_fn)) is not None]
    seen, leaf, cut = {id(n.node) for n in todo}, False, False
    for node in islice(_popping(todo), _MANY):
        if id(node.node) in forbidden:
            return False
        if node in values:
            cut = True
            continue
        leaf = leaf or isinstance(node.variable, torch.Tensor)
        for child in node.children:
            below = scene.graph.find(child)
            if below is not None and id(child) not in seen:
                seen.add(id(child))
                todo.append(below)
    return leaf and cut and not todo


def _popping(todo: list[GraphNode]) -> Iterator[GraphNode]:
    while todo:
        yield todo.pop()
