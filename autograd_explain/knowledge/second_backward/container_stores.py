"""Where the container, or the object, that holds an old value got it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from autograd_explain.arguments import given_by
from autograd_explain.inspect.dataflow.safe_lookup import MISSING
from autograd_explain.inspect.facts.binding import binding_of
from autograd_explain.inspect.facts.container_puts import Store, foreign_to, live_object, put_of
from autograd_explain.inspect.facts.expressions import expression_at
from autograd_explain.inspect.live.graph import GraphNode
from autograd_explain.inspect.scene import Scene
from autograd_explain.isolation.type_checks import is_a
from autograd_explain.model import LineId, Place
from autograd_explain.nodes import GraphTraversal
from autograd_explain.program import is_of_package

from .freed_part import FreedPart

_SECONDS = 0.5


@dataclass(frozen=True)
class Stored:
    """A statement that puts a value into a container: `self.items.append(z)`.

    `place` has the span of the value; `read_again` tells that values of the failing round are
    read out of the container too, so that it is no mere memory of earlier rounds.  `others` put
    further old values there, or into other containers of the same object.
    """

    place: Place
    read_again: bool
    others: tuple[Place, ...] = ()


def stored(scene: Scene, part: FreedPart) -> Stored | None:
    """Where the container that holds the old value got it; None where that is not one statement,
    where nothing else would be left to go backward to, and where the old value is read by a name of
    its own: the container is a mere record then."""
    if (scene.roots and not part.leads_on) or _is_read_by_name(scene, part):
        return None
    for name in _paths(scene, part):
        found = put_of(scene, name)
        if found is not None:
            container, put = found
            others = tuple(_stored_beside(scene, part, container))
            return Stored(put.place, _read_again(scene, part, container), others)
    return None


def _stored_beside(scene: Scene, part: FreedPart, container: str) -> Iterator[Place]:
    """Where each kind of old value that the container's object holds was put."""
    old, seen = {id(n.node) for n in part.old}, set[str]()
    owner = container.rpartition(".")[0] or container
    for named in scene.names.tensors:
        inside = named.name.startswith((f"{owner}.", f"{owner}["))
        kind = re.sub(r"\[\d+\]", "[0]", named.name, count=1)
        if inside and kind not in seen and id(named.tensor.grad_fn) in old:
            seen.add(kind)
            found = put_of(scene, named.name)
            if found is not None:
                yield found[1].place


def _is_read_by_name(scene: Scene, part: FreedPart) -> bool:
    """Whether the reading line has it by the name that it got where it was made."""
    if part.carrier is None or part.reader is None or part.binding is None:
        return False
    given = {n for n in part.binding.names if n.isidentifier()}
    return not given.isdisjoint({*scene.names.of(part.carrier.tensor)} & {*part.reader.operands})


def stored_as_attribute(scene: Scene, part: FreedPart) -> Stored | None:
    """`self.last = loss`: the one statement that keeps the old value as an attribute of an object
    of the user's, where it was computed before under another name."""
    live = () if part.carrier is None else scene.names.of(part.carrier.tensor)
    for owner, _, attribute in (name.rpartition(".") for name in live):
        value = live_object(scene, owner) if attribute.isidentifier() else MISSING
        found = [] if value is MISSING else list(_set(scene, value, owner, attribute))
        if len(found) == 1 and isinstance(found[0].value, (ast.Name, ast.Attribute)):
            return Stored(found[0].place, False)
    return None


def handed_to_keep(scene: Scene, part: FreedPart) -> tuple[Stored, str] | None:
    """What a call that only keeps something was handed, `z` of `store.update(i, z)`, with its text:
    the one argument with a graph, where a library has made the old value in it of nothing else."""
    at = None if part.maker is None else part.maker.place
    call = expression_at(scene, at)
    dropped = isinstance(scene.program.statement_at(at), ast.Expr)
    if call is None or not dropped or not part.leads_on or not isinstance(call.node, ast.Call):
        return None
    owners = (scene.slicer.value(s) for s in (call.receiver, call.callable) if s is not None)
    given = [call.inside(node) for _, node in given_by(call.node)]
    values = [(spot, scene.slicer.value(spot)) for spot in given]
    found = [(s, v) for s, v in values if is_a(v, torch.Tensor) and v.grad_fn is not None]
    if len(found) == 1 and any(is_of_package(type(owner)) for owner in owners):
        ((spot, tensor),) = found
        own = _leaves(part.boundary.node)
        if own and own <= _leaves(tensor.grad_fn):
            return Stored(scene.slicer.place(spot), False), spot.text
    return None


def _leaves(start: Any) -> set[int]:
    """The leaves behind a node, by identity; {} where the walk left some out."""
    walk = GraphTraversal([start], seconds=_SECONDS)
    found = {id(leaf) for leaf in walk.leaves()}
    return found if walk.complete else set()


def _set(scene: Scene, owner: Any, path: str, attribute: str) -> Iterator[Store]:
    """What statements give an attribute of the object, first values (None, numbers) left out."""
    foreign = foreign_to(scene.index, owner)
    for source, node in scene.index.nodes(ast.Assign):
        for target in node.targets:
            named = isinstance(target, ast.Attribute) and target.attr == attribute
            whose = ast.unparse(target.value) if isinstance(target, ast.Attribute) else ""
            known = whose == path or (whose == "self" and node not in foreign)
            if named and known and not isinstance(node.value, ast.Constant):
                yield Store(source, node.value)


def _paths(scene: Scene, part: FreedPart) -> Iterator[str]:
    """How the old value is reached: by live names, else as the line spells it that reads it."""
    if part.carrier is not None:
        yield from scene.names.of(part.carrier.tensor)
    elif part.reader is not None:
        yield from part.reader.operands


def _read_again(scene: Scene, part: FreedPart, container: str) -> bool:
    """Whether a statement that reads old values out of the container reads new ones there too, or
    may, where it is not known and something is known to be new."""
    old = {id(n.node) for n in part.old}
    before, now = set(_readers(scene, part.boundary, old)), set()
    new = False
    for named in scene.names.tensors:
        if not named.name.startswith(container + "["):
            continue
        node = None if named.tensor.is_leaf else scene.graph.find(named.tensor.grad_fn)
        if node is not None and id(node.node) in old:
            before |= set(_readers(scene, node, old))
        elif node is not None:
            new = new or scene.history.maker(node) is not None
            now |= set(_readers(scene, node, old, _own_names(scene, node)))
    return bool(before & now) if before else new


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
