"""Values that were computed before the parameters behind them were updated, and never again.

`self.shift = torch.stack([self.dx, self.dy])` in a constructor saves nothing that a step would
overwrite or a backward free, and `retain_graph=True` keeps the rest: each round goes back through
the same old part of the graph, and its gradient is that of values the parameters no longer have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch._C._autograd import _get_sequence_nr as sequence

from ...nodes import GraphTraversal, is_view, sequence_of
from ..observe.event_log import EventLog, Wrote
from ..observe.tensor_facts import storage
from .finding import CandidateFault, Mark, Marks

_MAX_WALK = 5_000
#: Once may be meant: two losses of one forward pass, each with a step of its own.
_TIMES = 2


@dataclass(frozen=True, eq=False)
class _Old:
    """A node that was there before the last backward, what a newer node made of it, if there is
    one, and the leaves whose values it was computed from."""

    node: Any
    reader: Any
    leaves: tuple[Tensor, ...]


class StaleValues:
    """Looks at what backwards go through; `bound` is the sequence number that the next node got
    when the last backward was over."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self.bound = 0
        self._times: Counter[int] = Counter()  #: backwards through an old node, by its number
        self.found: list[CandidateFault] = []

    def begin(self) -> None:
        """A cell begins."""
        self.found.clear()

    def after_backward(self) -> None:
        self.bound = sequence()

    def look(self, roots: Iterable[Tensor], backward: Mark) -> bool:
        """Whether a backward is about to go through such values: they are told when one of them was
        met before."""
        stale = {old: w for old in _old_parts(roots, self.bound) if (w := self._updates(old))}
        numbers = [sequence_of(old.node) for old in stale]
        self._times.update(numbers)
        if any(self._times[number] == _TIMES for number in numbers):
            first = min((w for writes in stale.values() for w in writes), key=lambda w: w.clock)
            self._tell(list(stale), first, backward)
        return bool(stale)

    def _updates(self, old: _Old) -> list[Wrote]:
        """The first write to each of its leaves since it was made."""
        made = self._log.maker_of(sequence_of(old.node))
        if made is None:
            return []
        writes = (self._log.write_since(made.clock, storage(leaf)) for leaf in old.leaves)
        return [wrote for wrote in writes if wrote is not None]

    def _tell(self, stale: list[_Old], update: Wrote, backward: Mark) -> None:
        nodes = (node for old in stale for node in (old.node, *_behind(old.node)))
        used = self._marks(old.reader for old in stale if old.reader is not None)
        marks: Marks = {
            "made": tuple({mark.site: mark for mark in self._marks(nodes)}.values()),
            "step": (Mark(update.site, update.clock),),
            "backward": (backward,),
        }
        marks |= {"used": used} if used else {}
        evidence = {"numbers": tuple(sequence_of(old.node) for old in stale)}
        self.found.append(CandidateFault("stale-value", marks, evidence))

    def _marks(self, nodes: Iterable[Any]) -> tuple[Mark, ...]:
        """The calls that made nodes, as far as they are known."""
        made = (self._log.maker_of(sequence_of(node)) for node in nodes)
        return tuple(Mark(m.site, m.clock) for m in made if m is not None)


def _old_parts(roots: Iterable[Tensor], bound: int) -> Iterator[_Old]:
    """The nodes made before `bound` that newer ones, or the roots themselves, lead to."""
    starts = [root.grad_fn for root in roots if root.grad_fn is not None]
    walk = [r.node for r in GraphTraversal(starts, limit=_MAX_WALK)]
    inner = [node for node in walk if not hasattr(node, "variable")]
    old = [node for node in inner if sequence_of(node) < bound]
    known = {id(node) for node in old}
    readers: dict[int, Any] = {id(node): None for node in starts if id(node) in known}
    for node in inner if old else ():
        if id(node) not in known:
            for child, _ in node.next_functions:
                if id(child) in known:
                    readers.setdefault(id(child), node)
    leaves = _leaves_read(old)
    for node in old:
        if id(node) in readers and leaves[id(node)]:
            yield _Old(node, readers[id(node)], tuple(leaves[id(node)].values()))


def _behind(node: Any) -> Iterator[Any]:
    """The nodes below one, leaves left out, the newest first."""
    for reached in GraphTraversal([node], limit=_MAX_WALK):
        if reached.node is not node and not hasattr(reached.node, "variable"):
            yield reached.node


def _leaves_read(old: list[Any]) -> dict[int, dict[int, Tensor]]:
    """For each of these nodes, which come newest first, the leaves whose values its result was
    computed from: none where it is a leaf's memory in another shape."""
    found: dict[int, dict[int, Tensor]] = {}
    shown: dict[int, dict[int, Tensor]] = {}  #: leaves whose own memory a node's result is
    for node in reversed(old):
        direct: dict[int, Tensor] = {}
        read: dict[int, Tensor] = {}
        for child, _ in node.next_functions:
            leaf = getattr(child, "variable", None)
            direct |= shown.get(id(child), {})
            read |= found.get(id(child), {})
            if isinstance(leaf, Tensor):
                direct[id(leaf)] = leaf
        same_memory = is_view(node.name())
        shown[id(node)] = direct if same_memory else {}
        found[id(node)] = read if same_memory else {**read, **direct}
    return found
