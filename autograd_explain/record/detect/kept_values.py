"""Values that the program keeps under a second name, and that are written in place afterwards.

`feats.append(x)`, then `x = F.relu(x, inplace=True)`: nothing saved is harmed, so no version is
checked, but the entry of the list is the tensor that was written.  Gathered here is who held a
tensor when it was written, and which operations read it afterwards and lead to a loss;
`kept_readers` tells from the text whether these read it by the second name.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType, ModuleType
from typing import Any, NamedTuple

from torch import Tensor
from torch._C._autograd import _get_sequence_nr as sequence

from ...isolation.frame_names import names_in
from ...isolation.type_checks import table_of
from ...nodes import GraphTraversal
from ..observe.call_sites import CallFrame
from ..observe.event_log import EventLog
from ..observe.tensor_facts import root
from .finding import Mark, TimeShare, Weak, weak

_LOOKS = 16  #: at the frames of one site
_MAX_KEPT = 200
_MAX_WRITES = 500  #: of one tensor
_MOST_MADE = 8  #: nodes by one write
_MAX_BUFFERS = 1_000
_MAX_NODES = 50_000
_MAX_BACKWARDS = 4  #: that a kept value is waited for
_MAX_ENTRIES = 1_000  #: of one namespace or container
#: What IPython itself keeps of the session.
_OF_THE_SHELL = frozenset({"In", "Out"})
#: Written twice so, a value is what it was after the first time.
_IDEMPOTENT = ("Relu", "Clamp", "Hardtanh", "Threshold")


class Holder(NamedTuple):
    """`path` held the tensor in the user's frame number `level` (0: the innermost), as an entry
    of a container so many `times`; 0 where it is the tensor itself."""

    level: int
    path: str
    times: int


class Reader(NamedTuple):
    """A call that read the value after the write, in one of its nodes so many `times`."""

    mark: Mark
    times: int


@dataclass(eq=False)
class KeptValue:
    """A tensor that had several names when it was written.

    `makers` are the numbers of the nodes whose result it was after a write, `since` that of the
    first node behind the first write.  `buffer`: its first values had no graph.
    """

    of: Weak
    writes: list[Mark]
    since: int
    buffer: bool
    makers: set[int] = field(default_factory=set)
    holders: tuple[Holder, ...] = ()
    readers: list[Reader] = field(default_factory=list)
    backward: Mark | None = None
    backwards: int = 0

    @property
    def rounds(self) -> int:
        """How often one line wrote it."""
        return max(Counter(mark.site for mark in self.writes).values())


class KeptValues:
    """Gathers such tensors and looks, at every backward, who has read them."""

    def __init__(self, log: EventLog, blind: set[str]) -> None:
        self.log = log
        self.blind = blind
        self.read: list[KeptValue] = []  #: those that a loss of this cell was computed of
        self._kept: deque[KeptValue] = deque()
        self._by_tensor: dict[int, KeptValue] = {}
        self._buffers: dict[int, Weak] = {}
        self._looks: Counter[int] = Counter()
        self._walks = TimeShare(share=0.02, free=20)

    def begin(self) -> None:
        """A cell begins."""
        self.read.clear()

    def wrote(
        self, tensor: Tensor, frame: FrameType, steps: Sequence[CallFrame], mark: Mark
    ) -> None:
        """A tensor with a graph was written by a call at these steps, below `frame`."""
        known = self._by_tensor.get(id(tensor))
        if known is None or known.of() is not tensor:
            known = None if self._looks[mark.site] == _LOOKS else self._first(tensor, mark)
        elif len(known.writes) < _MAX_WRITES:
            known.writes.append(mark)
            known.makers.update(_made_by_write(tensor))
        if known is None:
            return
        if self._looks[mark.site] < _LOOKS:
            self._looks[mark.site] += 1
            known.holders = (*holders_of(tensor, frame, steps),) or known.holders
        if known.holders and self._by_tensor.get(id(tensor)) is not known:
            self._add(tensor, known)

    def _first(self, tensor: Tensor, mark: Mark) -> KeptValue | None:
        """A tensor whose values were computed, and that was written."""
        base = root(tensor)
        node = base.grad_fn
        if node is None or not self._changed_values(base, node):
            return None
        makers = set(_made_by_write(tensor))
        if not makers:
            return None
        return KeptValue(weak(tensor), [mark], sequence(), self._is_buffer(base), makers)

    def _changed_values(self, base: Tensor, node: Any) -> bool:
        before = node.next_functions[0][0] if node.next_functions else None
        if before is None:
            if len(self._buffers) == _MAX_BUFFERS:
                self._buffers.clear()
            self._buffers[id(base)] = weak(base)
            return False
        return not (before.name() == node.name() and node.name().startswith(_IDEMPOTENT))

    def _is_buffer(self, base: Tensor) -> bool:
        known = self._buffers.get(id(base))
        return known is not None and known() is base

    def _add(self, tensor: Tensor, kept: KeptValue) -> None:
        self._kept.append(kept)
        self._by_tensor[id(tensor)] = kept
        if len(self._kept) > _MAX_KEPT:
            self._drop(self._kept[0])

    def _drop(self, kept: KeptValue) -> None:
        self._kept.remove(kept)
        self._by_tensor = {k: v for k, v in self._by_tensor.items() if v is not kept}

    def before_backward(self, roots: tuple[Tensor, ...], mark: Mark) -> None:
        """Search the graph of `roots` for what read such values after they had been written."""
        if not self._kept or self._walks.is_spent(self.blind):
            return
        with self._walks:
            makers = {number: kept for kept in self._kept for number in kept.makers}
            oldest = min(kept.since for kept in self._kept)
            for reached in GraphTraversal((r.grad_fn for r in roots), limit=_MAX_NODES):
                if reached.sequence < oldest:
                    break  # the newest come first
                if not hasattr(reached.node, "variable"):
                    self._look_at(reached.node, reached.sequence, makers)
            for kept in [*self._kept]:
                kept.backwards += 1
                if kept.readers and kept.backward is None:
                    kept.backward = mark
                    self.read.append(kept)
                if kept.readers or kept.backwards == _MAX_BACKWARDS:
                    self._drop(kept)

    def _look_at(self, node: Any, number: int, makers: Mapping[int, KeptValue]) -> None:
        read = Counter(
            child._sequence_nr() for child, _ in node.next_functions if child is not None
        )
        for maker, times in read.items():
            kept = makers.get(maker)
            if kept is not None and number >= kept.since and number not in kept.makers:
                made = self.log.maker_of(number)
                if made is not None:
                    kept.readers.append(Reader(Mark(made.site, made.clock), times))


def _made_by_write(tensor: Tensor) -> range:
    """The numbers of the nodes that stand for a tensor just written: of a view, whose own node is
    not asked for, those that the write has made.  None where it was not recorded."""
    node, end = root(tensor).grad_fn, sequence()
    first = 0 if node is None else node._sequence_nr()
    if first < end - _MOST_MADE:
        return range(0)
    return range(first, first + 1 if tensor._base is None else end)


def holders_of(tensor: Tensor, frame: FrameType, steps: Sequence[CallFrame]) -> Iterator[Holder]:
    """By which paths the user's frames held a tensor."""
    inner: FrameType | None = frame
    for level, step in enumerate(steps):
        while inner is not None and inner.f_code is not step.code:
            inner = inner.f_back
        if inner is None:
            return
        for path, times in _paths(tensor, _entries(names_in(inner))):
            yield Holder(level, path, times)
        inner = inner.f_back


def _entries(names: Mapping[str, Any]) -> list[tuple[str, Any]]:
    found = [item for item in [*names.items()][-_MAX_ENTRIES:] if type(item[0]) is str]
    return [(n, v) for n, v in found if not n.startswith("_") and n not in _OF_THE_SHELL]


def _paths(tensor: Tensor, entries: list[tuple[str, Any]]) -> Iterator[tuple[str, int]]:
    base = tensor._base
    for name, value in entries:
        if value is tensor or (base is not None and value is base):
            yield name, 0
        elif times := _times(tensor, value):
            yield name, times
        elif type(value) is not ModuleType:
            for attribute, inner in _entries(table_of(value)):
                if inner is tensor:
                    yield f"{name}.{attribute}", 0
                elif times := _times(tensor, inner):
                    yield f"{name}.{attribute}", times


def _times(tensor: Tensor, value: Any, *, deeper: bool = True) -> int:
    """How often a container of Python's, or one within, holds a tensor."""
    kind = type(value)
    if kind is dict:
        held = [*value.values()]
    elif kind in (list, tuple, deque):
        held = [*value]
    else:
        return 0
    held = held[-_MAX_ENTRIES:]
    found = sum(each is tensor for each in held)
    if not deeper:
        return found
    return found + sum(_times(tensor, each, deeper=False) for each in held)
