"""The autograd graph behind a failed backward: its nodes and what they saved.

Walks without recursion and within a budget.  Facts used here (torch 2.13): reading `_saved_x`
checks the version again and raises the error of the failed backward, with both versions; on a
freed node it raises the second-backward error; it runs user unpack hooks, so `_raw_saved_x` and
its `unpack_hook` are read first.  `SavedTensor.data` aliases the saved tensor without a check
(torch/csrc/autograd/python_saved_variable_hooks.cpp).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import torch
from torch.autograd.graph import GradientEdge

from ...nodes import GraphTraversal, start_of

_VERSIONS = re.compile(r"is at version (\d+); expected version (\d+)")
#: AccumulateGrad nodes carry the largest number (torch/csrc/autograd/function.h).
_LEAF_SEQUENCE = 2**63
_MANY = 2_000
_RAW = "_raw_saved_"
_RAISES = "torch::autograd::Error"
_FREED = "after they have already been freed"


@dataclass(frozen=True, eq=False)
class GraphNode:
    """A node of the autograd graph; equal only to itself.

    `sequence` rises with creation (`Node._sequence_nr`); AccumulateGrad nodes have the largest
    possible number, so they run first.  `name` is torch's name without the trailing digit's
    meaning ("AddmmBackward0").  `depth` is the distance from the root.
    """

    node: Any
    name: str
    sequence: int
    depth: int
    #: by kind of node, shared by the nodes of a graph; gone with it, as a kind may be the user's
    known_slots: dict[type, tuple[str, ...]] = field(default_factory=dict, repr=False)

    @property
    def children(self) -> tuple[Any, ...]:
        """The next functions (towards the leaves), as torch objects, None left out."""
        return tuple(fn for fn, _ in self.node.next_functions if fn is not None)

    @property
    def variable(self) -> torch.Tensor | None:
        """The leaf of an AccumulateGrad node."""
        found = getattr(self.node, "variable", None)
        return found if isinstance(found, torch.Tensor) else None

    @cached_property
    def freed_slots(self) -> tuple[str, ...]:
        """The slots whose tensor an earlier backward released; one that never held any is none."""
        return tuple(_freed_slots(self))

    def slots(self) -> tuple[str, ...]:
        """Names of the saved slots, without `_raw_saved_`."""
        kind = type(self.node)
        if kind not in self.known_slots:
            found = (a for a in dir(kind) if a.startswith(_RAW))
            self.known_slots[kind] = tuple(a.removeprefix(_RAW) for a in found)
        return self.known_slots[kind]

    def raw(self, slot: str) -> tuple[Any, ...]:
        """The SavedTensor handles of a slot (a list slot has several, an empty one none)."""
        try:
            found = getattr(self.node, f"{_RAW}{slot}")
        except Exception:
            # A freed list slot raises here already.
            return ()
        if found is None:
            return ()
        return tuple(found) if isinstance(found, (tuple, list)) else (found,)


@dataclass(frozen=True)
class SavedTensor:
    """A saved slot of a graph node, with the tensor it holds (live: never leaves the Scene).

    `name` is the slot ("self", "result", "mat2", "weight" …); `tensor` aliases the saved tensor
    (same storage, offset, strides and version counter).  `saved_version` is None where torch
    did not say (the slot is fine, or hooks forbid to look).
    """

    node: GraphNode
    name: str
    tensor: torch.Tensor
    saved_version: int | None
    current_version: int


class Graph:
    """The nodes reachable from the roots' `grad_fn`s, newest first, up to a budget.

    A node that Python has looked at frees its successors recursively in C++ when it dies
    (torch 2.13: about 190 bytes of stack each; untouched nodes are freed in a loop), so looking
    down a chain of 100,000 nodes would crash the session later.  The walk therefore stops at a
    depth that the stack bears; `complete` is False then.
    """

    def __init__(
        self,
        roots: Sequence[torch.Tensor | GradientEdge],
        *,
        limit: int = 200_000,
        seconds: float = 2.0,
    ) -> None:
        self.roots = tuple(roots)
        self.starts = tuple(map(start_of, roots))
        walk = GraphTraversal(self.starts, limit=limit, seconds=seconds)
        slots: dict[type, tuple[str, ...]] = {}
        self.nodes = tuple(
            GraphNode(n.node, n.node.name(), n.sequence, n.depth, slots) for n in walk
        )
        self.complete = walk.complete
        self._by_identity = {id(n.node): n for n in self.nodes}

    def find(self, node: Any) -> GraphNode | None:
        """The GraphNode of a torch node, if the walk reached it."""
        return self._by_identity.get(id(node))

    def parents(self, node: GraphNode) -> tuple[GraphNode, ...]:
        """The nodes that consume this node's outputs (towards the root)."""
        return tuple(self._consumers.get(id(node.node), ()))

    @property
    def inner(self) -> list[GraphNode]:
        """The nodes that an operation of the program made, newest first."""
        return [n for n in self.nodes if 0 <= n.sequence < _LEAF_SEQUENCE]

    @cached_property
    def ends_early(self) -> bool:
        """Whether a backward that may run only once was differentiated: in its place torch puts a
        node that raises and leads nowhere (torch/autograd/function.py, `once_differentiable`)."""
        return any(n.name == _RAISES for n in self.nodes)

    def used_outside(self, part: Sequence[GraphNode]) -> list[GraphNode]:
        """The nodes of a part whose result a node outside of it uses, in the part's order."""
        known = {id(n) for n in part}
        return [n for n in part if any(id(p) not in known for p in self.parents(n))]

    def below_gap(self) -> list[GraphNode]:
        """The nodes older than the newest gap in the sequence numbers; [] where there is none."""
        nodes = self.inner
        for i, (newer, older) in enumerate(pairwise(nodes)):
            if newer.sequence - older.sequence > 1:
                return nodes[i + 1 :]
        return []

    def above(self, nodes: Iterable[GraphNode]) -> tuple[GraphNode, ...]:
        """The nodes and all that is computed from them, up to the roots."""
        return _reached(nodes, self.parents)

    def below(self, nodes: Iterable[GraphNode]) -> tuple[GraphNode, ...]:
        """The nodes and all that they are computed from, down to the leaves."""
        return _reached(nodes, self._operands)

    def ends_at(
        self, ends: Callable[[GraphNode], bool], forbidden: Collection[int] = frozenset()
    ) -> bool:
        """Whether the graph would end at some of its nodes, lead to a leaf elsewhere, and past the
        forbidden ones (by identity); False too where that takes too long to see."""
        pending = [n for start in self.starts if (n := self.find(start)) is not None]
        seen, leaf, cut = {id(n.node) for n in pending}, False, False
        while pending and len(seen) < _MANY:
            node = pending.pop()
            if id(node.node) in forbidden:
                return False
            if ends(node):
                cut = True
                continue
            leaf = leaf or isinstance(node.variable, torch.Tensor)
            fresh = [n for n in self._operands(node) if id(n.node) not in seen]
            seen |= {id(n.node) for n in fresh}
            pending += fresh
        return leaf and cut and not pending

    def _operands(self, node: GraphNode) -> tuple[GraphNode, ...]:
        return tuple(n for c in node.children if (n := self.find(c)) is not None)

    @property
    def _consumers(self) -> dict[int, list[GraphNode]]:
        cached = self.__dict__.get("_consumer_map")
        if cached is None:
            cached = {}
            for parent in self.nodes:
                for child in parent.children:
                    cached.setdefault(id(child), []).append(parent)
            self.__dict__["_consumer_map"] = cached
        return cached

    def overwritten(self) -> Iterator[SavedTensor]:
        """Saved slots whose tensor was written since, newest node first."""
        for node in self.nodes:
            for slot in node.slots():
                yield from _overwritten_slots(node, slot)

    @cached_property
    def is_freed(self) -> bool:
        """Whether an earlier backward has freed what a node of it had saved."""
        return any(n.freed_slots for n in self.nodes)

    def saved(self) -> Iterator[SavedTensor]:
        """Every saved tensor that can be looked at, newest node first."""
        for node in self.nodes:
            for slot in node.slots():
                for raw in node.raw(slot):
                    tensor = _peek(raw)
                    if tensor is not None:
                        yield SavedTensor(node, slot, tensor, None, tensor._version)


def _reached(
    starts: Iterable[GraphNode], beside: Callable[[GraphNode], tuple[GraphNode, ...]]
) -> tuple[GraphNode, ...]:
    found = {id(n.node): n for n in starts}
    frontier = list(found.values())
    while frontier:
        for node in beside(frontier.pop()):
            if id(node.node) not in found:
                found[id(node.node)] = node
                frontier.append(node)
    return tuple(found.values())


def _freed_slots(node: GraphNode) -> Iterator[str]:
    for slot in node.slots():
        if any(getattr(raw, "unpack_hook", None) is not None for raw in node.raw(slot)):
            return
        try:
            _read(node, slot)
        except RuntimeError as error:
            if _FREED in str(error):
                yield slot


def _read(node: GraphNode, slot: str) -> Any:
    """Reads a slot with torch's checks.  Custom Functions call theirs `saved_tensors`."""
    name = f"_saved_{slot}"
    return getattr(node.node, name if hasattr(type(node.node), name) else f"saved_{slot}")


def _overwritten_slots(node: GraphNode, slot: str) -> Iterator[SavedTensor]:
    handles = node.raw(slot)
    if not handles or any(getattr(h, "unpack_hook", None) is not None for h in handles):
        return
    try:
        _read(node, slot)
    except RuntimeError as error:
        versions = _VERSIONS.search(str(error))
        if versions is None:
            return
        current, saved = int(versions[1]), int(versions[2])
        for handle in handles:
            tensor = _peek(handle)
            if tensor is not None and tensor._version == current:
                yield SavedTensor(node, slot, tensor, saved, current)


def _peek(handle: Any) -> torch.Tensor | None:
    """The saved tensor without a version check, or None where it cannot be had."""
    try:
        if getattr(handle, "unpack_hook", None) is not None:
            return None
        data = handle.data
    except Exception:
        return None
    return data if isinstance(data, torch.Tensor) else None
