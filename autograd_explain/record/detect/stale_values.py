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

from ...nodes import GraphTraversal, sequence_of
from ..observe.event_log import EventLog, Made, Wrote
from ..observe.tensor_facts import storage
from .finding import CandidateFault, Mark, weak

_MAX_WALK = 5_000
#: Once may be meant: two losses of one forward pass, each with a step of its own.
_TIMES = 2
#: What shows its input's memory (torch/csrc/autograd/generated/ViewFuncs.h): it is never old.
_VIEWS = frozenset(
    f"{name}Backward"
    for name in "T MT Transpose Permute View ReshapeAlias Unsqueeze Squeeze Expand Select Slice "
    "Narrow Split SplitWithSizes Unbind AsStrided Diagonal Alias Unfold Swapaxes Flatten".split()
)


@dataclass(frozen=True)
class _Old:
    """A node that was there before the last backward, what newer nodes made of it, if there are
    any, and the leaves whose values it was computed from; `behind` are the old nodes below it."""

    node: Any
    reader: Any
    leaves: tuple[Tensor, ...]
    behind: tuple[Any, ...]


@dataclass(frozen=True)
class _Stale:
    """An old node, the calls that made it and what is behind it, the newest first, and the first
    write to one of its leaves since."""

    old: _Old
    made: tuple[Made, ...]
    write: Wrote
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
        stale = [s for s in map(self._stale, _old_parts(roots, self.bound)) if s is not None]
        numbers = [sequence_of(s.old.node) for s in stale]
        self._times.update(numbers)
        if any(self._times[number] == _TIMES for number in numbers):
            self._tell(stale, backward)
        return bool(stale)

    def _stale(self, old: _Old) -> _Stale | None:
        known = [self._log.maker_of(sequence_of(n)) for n in (old.node, *old.behind)]
        if known[0] is None:
            return None
        clock, writes = known[0].clock, []
        for leaf in old.leaves:
            wrote = self._log.write_since(clock, storage(leaf))
            writes += [] if wrote is None else [(leaf, wrote)]
        if not writes:
            return None
        first = min((wrote for _, wrote in writes), key=lambda wrote: wrote.clock)
        made = {m.site: m for m in known if m is not None}
        return _Stale(old, tuple(made.values()), first, tuple(leaf for leaf, _ in writes))

    def _tell(self, stale: list[_Stale], backward: Mark) -> None:
        first = min((s.write for s in stale), key=lambda wrote: wrote.clock)
        made = {m.site: Mark(m.site, m.clock) for s in stale for m in s.made}
        readers = (s.old.reader for s in stale if s.old.reader is not None)
        used = [self._log.maker_of(sequence_of(node)) for node in readers]
        marks = {
            "made": tuple(made.values()),
            "used": tuple(Mark(m.site, m.clock) for m in used if m is not None),
            "step": (Mark(first.site, first.clock),),
            "backward": (backward,),
        }
        evidence = {
            "leaves": tuple(weak(leaf) for s in stale for leaf in s.leaves),
            "numbers": tuple(sequence_of(s.old.node) for s in stale),
        }
        present = {role: found for role, found in marks.items() if found}
        self.found.append(CandidateFault("stale-value", present, evidence))


def _old_parts(roots: Iterable[Tensor], bound: int) -> Iterator[_Old]:
    """The nodes made before `bound` that newer ones, or the roots themselves, lead to."""
    starts = [root.grad_fn for root in roots if root.grad_fn is not None]
    walk = [r.node for r in GraphTraversal(starts, limit=_MAX_WALK)]
    inner = [node for node in walk if getattr(node, "variable", None) is None]
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
            read = tuple(leaves[id(node)].values())
            yield _Old(node, readers[id(node)], read, tuple(_behind(node, known)))


def _behind(node: Any, known: set[int]) -> Iterator[Any]:
    for reached in GraphTraversal([node], limit=_MAX_WALK):
        if reached.node is not node and id(reached.node) in known:
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
        is_view = node.name().rstrip("0123456789") in _VIEWS
        shown[id(node)] = direct if is_view else {}
        found[id(node)] = read if is_view else {**read, **direct}
    return found
