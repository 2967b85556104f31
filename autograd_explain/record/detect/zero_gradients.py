"""Leaves whose every way to the loss leads through an operation whose derivative is 0."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from torch import Tensor

from ...nodes import GraphTraversal
from ..observe.event_log import EventLog
from ..observe.tensor_facts import is_plain
from .finding import CandidateFault, Mark, Marks, Weak, weak

#: Nodes that hand back zeros (`zeros_like(grad)` in torch's derivatives.yaml, tried on torch 2.13).
_STEPS = frozenset(
    "RoundBackward0 RoundBackward1 FloorBackward0 CeilBackward0 TruncBackward0 "
    "SignBackward0".split()
)
_DIVISION = "DivBackward"
_ROUNDING = "_saved_rounding_mode"  #: torch.div(x, y, rounding_mode="floor")
_MAX_NODES = 5_000


class _Behind(NamedTuple):
    """A leaf that only gets zeros: the call that made the last such operation on its way to the
    loss, the backward, and whether the whole loss is computed of what such operations give."""

    leaf: Weak
    shape: str
    operation: Mark
    backward: Mark
    whole: bool


def has_zero_derivative(node: Any) -> bool:
    """Whether a node's derivative is 0 wherever there is one."""
    name = type(node).__name__
    if name in _STEPS:
        return True
    return name.startswith(_DIVISION) and getattr(node, _ROUNDING, None) is not None


@dataclass
class ZeroGradients:
    """Suspects by the graph, confirmed by the gradient that a step finds or the cell leaves."""

    log: EventLog
    _behind: dict[int, _Behind] = field(default_factory=dict)
    _confirmed: set[int] = field(default_factory=set)

    def begin(self) -> None:
        """A cell begins."""
        self._behind.clear()
        self._confirmed.clear()

    def look(self, roots: Iterable[Tensor], backward: Mark) -> None:
        """A backward begins on a graph that has such operations."""
        walk = GraphTraversal((r.grad_fn for r in roots), limit=_MAX_NODES)
        entry, leaves = _entries(walk, roots)
        if not walk.complete:
            return
        whole = all(entry[node] is not None for node in leaves)
        for node, leaf in reversed(leaves.items()):  # as the loss was computed
            step = entry[node]
            made = None if step is None else self.log.maker_of(step._sequence_nr())
            if made is not None and id(leaf) not in self._behind:
                mark = Mark(made.site, made.clock)
                shape = str(list(leaf.shape))
                self._behind[id(leaf)] = _Behind(weak(leaf), shape, mark, backward, whole)

    def before_step(self, parameters: Iterable[Tensor]) -> None:
        if self._behind:
            for parameter in parameters:
                self._compare(parameter)

    def _compare(self, leaf: Tensor) -> None:
        """What the graph says is held against the gradient that came."""
        known = self._behind.get(id(leaf))
        gradient = leaf.grad
        if known is None or known.leaf() is not leaf or gradient is None:
            return
        if not is_plain(gradient) or bool(gradient.any()):
            del self._behind[id(leaf)]
            self._confirmed.discard(id(leaf))
        else:
            self._confirmed.add(id(leaf))

    def left_behind(self) -> Iterator[CandidateFault]:
        """A finding for each such operation, where the cell has ended."""
        for behind in [*self._behind.values()]:
            if (leaf := behind.leaf()) is not None:
                self._compare(leaf)
        by_site: dict[int, list[_Behind]] = {}
        for key, behind in self._behind.items():
            if key in self._confirmed:
                by_site.setdefault(behind.operation.site, []).append(behind)
        for found in by_site.values():
            marks: Marks = {"operation": (found[0].operation,), "backward": (found[0].backward,)}
            evidence = {
                "parameters": tuple(b.leaf for b in found),
                "shapes": tuple(b.shape for b in found),
                "count": len(found),
                "whole": all(b.whole for b in found),
            }
            yield CandidateFault("zero-gradient", marks, evidence)


def _entries(
    walk: GraphTraversal, roots: Iterable[Tensor]
) -> tuple[dict[Any, Any], dict[Any, Tensor]]:
    """For each node, None where a gradient can reach it, else the operation that gives zeros; and
    the leaves by their nodes.  A node comes after all that hand it a gradient, but for leaves'."""
    entry: dict[Any, Any] = {r.grad_fn: None for r in roots if r.grad_fn is not None}
    leaves: dict[Any, Tensor] = {}
    for reached in walk:
        node = reached.node
        if isinstance(leaf := getattr(node, "variable", None), Tensor):
            leaves[node] = leaf
        given = entry[node]
        if given is None and has_zero_derivative(node):
            given = node
        for child, _ in node.next_functions:
            if child is not None and (child not in entry or entry[child] is not None):
                entry[child] = given
    return entry, leaves
