"""Values that go on living with their graph: in a container, or after they went backward."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import torch

from ...model import LineId, Place
from ...program import own_nodes
from ..live.graph import GraphNode
from ..scene import Scene
from .binding import NodesOfName, binding_of
from .container_stores import PUTS, put_of
from .freed_part import FreedPart

_MANY = 2_000


@dataclass(frozen=True)
class Stored:
    """A statement that puts a value into a container: `self.items.append(z)`.

    `place` has the span of the value; `read_again` tells that values of the failing round are
    read out of the container too, so that it is no mere memory of earlier rounds.
    """

    place: Place
    read_again: bool


def stored(scene: Scene, part: FreedPart) -> Stored | None:
    """Where the container that holds the old value got it; None where that is not one statement,
    and where nothing else would be left to go backward to."""
    old = {id(n.node) for n in part.old}
    if scene.roots and not _cuts(scene, lambda n: id(n.node) in old, set()):
        return None
    for name in _paths(scene, part):
        found = put_of(scene, name)
        if found is not None:
            container, put = found
            return Stored(put.place, _read_again(scene, part, container))
    return None


def _paths(scene: Scene, part: FreedPart) -> Iterator[str]:
    """How the old value is reached: by live names, else as the line spells it that reads it."""
    if part.carrier is not None:
        yield from scene.names.of(part.carrier.tensor)
    elif part.reader is not None:
        yield from part.reader.operands


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
    return () if maker is None else binding_of(scene.program, maker).names


def _readers(
    scene: Scene, node: GraphNode, old: set[int], own: tuple[str, ...] = ()
) -> Iterator[LineId]:
    """The lines of new nodes that use this one's value, those left out that name it themselves."""
    for parent in scene.graph.parents(node):
        maker = None if id(parent.node) in old else scene.history.maker(parent)
        read = "" if maker is None else " ".join(maker.operands)
        if maker is not None and not any(_mentions(read, name) for name in own):
            yield maker.place.line_id


def _mentions(code: str, name: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", code) is not None


def spent(scene: Scene, needed: Iterable[GraphNode]) -> Place | None:
    """Where a value that went backward already is kept: the `loss` of `curve.append(loss)`.

    None unless cutting it there leads past all the `needed` nodes and leaves something else to go
    backward to.
    """
    forbidden = {id(n.node) for n in needed}
    calls = [m for m in scene.history.steps if m.op == "backward" and m.operands]
    seen = set()
    for call in reversed(calls):
        name = call.operands[0]
        if call.place.line_id in seen or not name.isidentifier():
            continue
        seen.add(call.place.line_id)
        places = list(_keepers(scene, call.place, name))
        if len(places) == 1 and _cuts_off(scene, call.place, name, forbidden):
            return places[0]
    return None


def _keepers(scene: Scene, call: Place, name: str) -> Iterator[Place]:
    """The statements of the function around a backward that keep the value it went from."""
    source = scene.program.source_at(call)
    statement = scene.program.statement_at(call)
    if source is None or statement is None:
        return
    for node in own_nodes(source.function_around(statement) or source.tree):
        value = _kept_value(node)
        if isinstance(value, ast.Name) and value.id == name:
            yield source.place(value.lineno, call.function, value)


def _kept_value(node: ast.AST) -> ast.expr | None:
    """What a statement keeps for later: `total += loss`, `curve.append(loss)`, `best[k] = loss`."""
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
        return node.value
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        return node.value
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp):
        left = ast.unparse(node.value.left) == ast.unparse(node.targets[0])
        return node.value.right if left and isinstance(node.value.op, ast.Add) else None
    call = node.value if isinstance(node, ast.Expr) else None
    method = call.func if isinstance(call, ast.Call) else None
    puts = isinstance(method, ast.Attribute) and method.attr in PUTS
    return call.args[-1] if puts and isinstance(call, ast.Call) and call.args else None


def _cuts_off(scene: Scene, call: Place, name: str, forbidden: set[int]) -> bool:
    """Whether no forbidden node is reached past the values of this name, but some leaf is."""
    return _cuts(scene, NodesOfName(scene, name, call).__contains__, forbidden)


def _cuts(scene: Scene, ends: Callable[[GraphNode], bool], forbidden: set[int]) -> bool:
    """Whether a graph that ends at some of its nodes still leads to a leaf, and past the forbidden
    ones."""
    todo = [n for r in scene.roots if (n := scene.graph.find(r.grad_fn)) is not None]
    seen, leaf, cut = {id(n.node) for n in todo}, False, False
    for node in islice(_popping(todo), _MANY):
        if id(node.node) in forbidden:
            return False
        if ends(node):
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
