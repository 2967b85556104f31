"""A state that an object keeps from call to call, where the history does not tell who made it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TypeGuard

import torch

from autograd_explain.inspect.facts.binding import Binding
from autograd_explain.inspect.live.graph import GraphNode
from autograd_explain.inspect.scene import Scene
from autograd_explain.nodes import GraphTraversal, start_of
from autograd_explain.program import Source

from .handed_object import kept_in_handed

_SECONDS = 0.5


@dataclass(frozen=True, eq=False)
class KeptAnew:
    """`binding` assigns the attribute `name`, which it reads too, or hands the object that keeps it
    to a library; `node` made the old value, and the value that lives there now was computed from
    it."""

    name: str
    binding: Binding
    node: GraphNode
    handed: str = ""  #: the name of that object


def kept_anew(scene: Scene) -> KeptAnew | None:
    """The state whose live value leads to an older one in the failing graph, made by the same
    operation as the last thing that is left of its round; None where none has one."""
    last = _last_of_rounds(scene)
    found: list[tuple[Callable[[GraphNode], KeptAnew], GraphNode]] = []
    for state, tensor in _states(scene) if last else ():
        start = None if tensor.is_leaf else start_of(tensor)
        if start is None:
            continue
        below = {id(reached.node) for reached in GraphTraversal([start], seconds=_SECONDS)}
        earlier = [n for n in last if n.node is not start and id(n.node) in below]
        alike = next((n for n in earlier if n.name == start.name()), None)
        if alike is not None:
            return state(alike)
        found += [(state, n) for n in earlier if _is_made_again(scene, n)]
    return next((state(node) for state, node in found), None)


def _states(scene: Scene) -> Iterator[tuple[Callable[[GraphNode], KeptAnew], torch.Tensor]]:
    """The states with what lives there: the attributes that the program computes anew from
    themselves, and what a call keeps in an object that it is handed."""
    found = {name: (source, node) for source, node, name in _kept(scene)}
    for named in scene.names.tensors if found else ():
        tail = "." + named.name.partition("[")[0].rpartition(".")[2]
        name = next((n for n in found if n.partition("[")[0].endswith(tail)), "")
        if name:
            source, node = found[name]
            function = source.function_around(node)
            place = source.place(node.lineno, None if function is None else function.name, node)
            yield partial(KeptAnew, name, Binding((place,), node)), named.tensor
    for named, path, call in kept_in_handed(scene):
        binding = Binding((scene.slicer.place(call),), scene.slicer.statement(call))
        yield partial(KeptAnew, named.name, binding, handed=path), named.tensor


def _is_made_again(scene: Scene, node: GraphNode) -> bool:
    """Whether the same operation made something newer: the first round may have had nothing to
    compute the state from, and kept what the others compute it from."""
    newer = (n for n in scene.graph.inner if n.sequence > node.sequence)
    return any(n.name == node.name for n in newer)


def _kept(scene: Scene) -> Iterator[tuple[Source, ast.Assign, str]]:
    """The statements `self.state = f(x, self.state)` and the attribute (or an element of one), and
    `self.state = x` of a function that has read it before."""
    for source, node in scene.index.nodes(ast.Assign):
        function = source.function_around(node) if isinstance(node.value, ast.Name) else None
        inside = ast.walk(node.value if function is None else function)
        loads = (n for n in inside if _is_state(n) and isinstance(n.ctx, ast.Load))
        read = {ast.unparse(n) for n in loads if n.lineno <= node.lineno}
        for target in (leaf for t in node.targets for leaf in getattr(t, "elts", [t])):
            if _is_state(target) and ast.unparse(target) in read:
                yield source, node, ast.unparse(target)


def _is_state(node: ast.AST) -> TypeGuard[ast.Attribute | ast.Subscript]:
    """`self.state` and `self.states[name]`"""
    held = node.value if isinstance(node, ast.Subscript) else node
    return isinstance(held, ast.Attribute)


def _last_of_rounds(scene: Scene) -> list[GraphNode]:
    """The nodes that a gap in the sequence numbers follows: what was computed from them next, up to
    an earlier loss, is not in the failing graph."""
    pairs = pairwise(scene.graph.inner)
    return [older for newer, older in pairs if newer.sequence - older.sequence > 1]
