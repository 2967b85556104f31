"""Writes that no version counter noticed, in order, each with what the memory held before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from torch import Tensor

from ..observe.tensor_facts import address, storage, unseen
from . import holders
from .contents import Content, agree, differs
from .finding import Mark, Reference, Weak, weak
from .regions import Region, checksum, overlap, region_of

#: Writes to one tensor that are kept: as many early ones as late ones, those between are dropped.
_MAX_OF_ONE = 64
_MAX_WRITES = 2_000
#: Of further values only samples are kept.
_MAX_BYTES = 32 * 1024 * 1024
#: Places at which every write was dropped; where there are more, all places count as such.
_MAX_FORGOTTEN = 10_000
_ANYWHERE = 0


class Hidden(NamedTuple):
    """A write that saved tensors of nodes numbered below `nodes` did not notice.

    `way` is data, set_data, numpy, step or function.  `storages` are the memories written,
    `region` the part (None: all of it), `of` the tensor whose memory it was.  `after` is the last
    site at which numpy memory was still unchanged, `shared` the site that gave numpy the memory,
    `alias` the site that read the `.data` which was written through, `stepped` the parameters of a
    step.  `before` is what the memory held (of numpy's a checksum); None where it was not read.
    """

    way: str
    clock: int
    site: int
    nodes: int
    storages: frozenset[int]
    region: Region | None = None
    of: Reference | None = None
    after: Mark | None = None
    shared: Mark | None = None
    alias: Mark | None = None
    stepped: tuple[Weak, ...] = ()
    before: Content | int | None = None

    def owner(self, saved: Tensor) -> Reference:
        """The tensor whose memory was written, as the program knows it."""
        kept = storage(saved)
        for each in self.stepped:
            parameter = each()
            if parameter is not None and storage(parameter) == kept:
                return each
        return self.of or weak(saved)

    @property
    def tensor(self) -> int:
        """The address of the tensor that was written, while it lives."""
        tensor = None if self.of is None or self.way not in ("data", "set_data") else self.of()
        return 0 if tensor is None else address(tensor)

    @property
    def sampled(self) -> bool:
        """Whether only a part is known of what the memory held.  A checksum is kept where memory
        is large, and is one of samples."""
        return not self.before.whole if isinstance(self.before, Content) else True

    def may_be_awaited(self) -> bool:
        """Whether a graph from before the write may still hold what was written."""
        tensor = None if self.of is None or self.way not in ("data", "set_data") else self.of()
        return tensor is None or holders.may_be_saved(tensor, aliases=0)

    def reaches(self, saved: Tensor) -> bool:
        """Whether it wrote what a saved tensor held."""
        if self.tensor == address(saved):
            return True
        return storage(saved) in self.storages and overlap(self.region, region_of(saved))

    @staticmethod
    def _sum(saved: Tensor, region: Region) -> int:
        with unseen():
            return checksum(saved.detach().as_strided(*region.view))

    def knew(self, saved: Tensor) -> bool:
        """Whether all that a saved tensor held is known from before this write, be it the part
        that was written or not."""
        if not isinstance(self.before, Content) or not self.before.whole:
            return False
        if self._moved(saved):
            return self.before.region.sizes == tuple(saved.shape)
        return self.before.covers(region_of(saved))

    def _moved(self, saved: Tensor) -> bool:
        """Whether it is the tensor that was written, with other memory by now."""
        return self.tensor == address(saved) and storage(saved) not in self.storages

    def harms(self, saved: Tensor) -> bool | None:
        """Whether a saved tensor differs from what it was before this write; None: unknown.

        A step or a Function writes other values, and nobody puts them back.
        """
        if isinstance(self.before, Content):
            moved = self._moved(saved)
            if moved and self.way == "data" and not self.knew(saved):
                return None
            return differs(self.before, saved, moved=moved)
        if isinstance(self.before, int):
            return None if self.region is None else self._sum(saved, self.region) != self.before
        return None if self.way in ("data", "set_data") else True


class Verdict(NamedTuple):
    """Of the writes to a saved tensor: `by` is the one that changed it for good, None where it is
    not known which; `first` the one that found it unchanged."""

    by: Hidden | None
    first: Hidden


class HiddenWrites:
    """The writes by the storage and by the tensor written.  When there are too many, the oldest go.

    Of many writes to one tensor, as finite differences make them, the first ones stay: they tell
    what a graph saved that is older than all of them.  Where one was dropped that a verdict would
    need, or a sample had to do for it, `blind` says so.
    """

    def __init__(self, blind: set[str]) -> None:
        self.blind = blind
        self._forgotten: dict[int, int] = {}  # by place: nodes from there on are younger
        self._all: dict[int, tuple[Hidden, tuple[int, ...]]] = {}
        self._at: dict[int, list[int]] = {}
        self._gaps: dict[int, _Gap] = {}
        self._number = 0
        self.bytes = 0

    def __bool__(self) -> bool:
        return bool(self._all or self._forgotten)

    @property
    def has_room(self) -> bool:
        """Whether values may be kept whole."""
        return self.bytes < _MAX_BYTES

    @property
    def newest(self) -> int:
        """Nodes from this number on saw all of the writes."""
        kept = max((h.nodes for h, _ in self._all.values()), default=-1)
        return max(kept, *self._forgotten.values(), -1)

    def add(self, write: Hidden) -> None:
        self._number += 1
        places = tuple({*write.storages, write.tensor} - {0})
        self._all[self._number] = write, places
        self.bytes += _size(write)
        for place in places:
            there = self._at.setdefault(place, [])
            there.append(self._number)
            if len(there) > _MAX_OF_ONE:
                self._leave(place, there[_MAX_OF_ONE // 2])
        while len(self._all) > _MAX_WRITES:
            self._drop_oldest()

    def forget(self, clock: int) -> None:
        """Drop writes from before a time."""
        while self._all and next(iter(self._all.values()))[0].clock < clock:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        number, (_, places) = next(iter(self._all.items()))
        for place in places:
            self._leave(place, number)

    def _leave(self, place: int, number: int) -> None:
        """Drop a write at one place, and altogether where it is kept at no other."""
        there = self._at.get(place, [])
        if number not in there:
            return
        write, places = self._all[number]
        at = there.index(number)
        there.remove(number)
        gap = self._gaps.get(place)
        nodes = write.nodes if gap is None else max(gap.nodes, write.nodes)
        self._gaps[place] = _Gap(at if gap is None else min(at, gap.position), nodes)
        if not there:
            del self._at[place], self._gaps[place]
            if write.may_be_awaited():
                self._forget_place(place, nodes)
        if not any(number in self._at.get(p, ()) for p in places):
            del self._all[number]
            self.bytes -= _size(write)

    def _forget_place(self, place: int, nodes: int) -> None:
        self._forgotten[place] = max(nodes, self._forgotten.pop(place, 0))
        if len(self._forgotten) > _MAX_FORGOTTEN:
            self._forgotten = {_ANYWHERE: max(self._forgotten.values())}

    def verdict(self, saved: Tensor, node: int) -> Verdict | None:
        """What the writes did to a tensor that the node of this number saved; None: nothing, it is
        as it was, or that is not known and `blind` says so."""
        if self._is_forgotten(saved, node):
            self.blind.add("writes_forgotten")
        numbers = self._numbers(saved)
        after = [(n, h) for n in numbers if (h := self._all[n][0]).nodes > node]
        if not any(h.reaches(saved) for _, h in after):
            if self._has_gap(saved, node):
                self.blind.add("writes_forgotten")
            return None
        writes = [(n, h) for n, h in after if h.reaches(saved) or h.knew(saved)]
        first = writes[0][1]
        if not self._is_known(writes[0][0], saved, node):
            self.blind.add("writes_forgotten")
            return None
        judges = [first] if first.knew(saved) else list(_first_of_each_part(writes))
        harms = [h.harms(saved) for h in judges]
        if True in harms:
            guilty = judges[harms.index(True)]
            return Verdict(self._last_to_change(guilty, writes, saved), guilty)
        if None in harms:
            self.blind.add("values_unreadable")
            return None
        if any(h.sampled for h in judges):
            self.blind.add("values_sampled")
        return None

    def _has_gap(self, saved: Tensor, node: int) -> bool:
        gaps = (self._gaps.get(place) for place in (storage(saved), address(saved)))
        return any(gap is not None and node < gap.nodes for gap in gaps)

    def _is_forgotten(self, saved: Tensor, node: int) -> bool:
        """Whether all writes were dropped that reached a tensor at one time after a node."""
        if not self._forgotten:
            return False
        places = (_ANYWHERE, storage(saved), address(saved))
        return any(node < self._forgotten.get(place, -1) for place in places)

    def _numbers(self, saved: Tensor) -> list[int]:
        places = (storage(saved), address(saved))
        return sorted({n for place in places for n in self._at.get(place, ())})

    def _is_known(self, number: int, saved: Tensor, node: int) -> bool:
        """Whether no write between a node and the first one kept was dropped."""
        for place in (storage(saved), address(saved)):
            gap, there = self._gaps.get(place), self._at.get(place, [])
            if gap is not None and node < gap.nodes and number in there:
                if there.index(number) >= gap.position:
                    return False
        return True

    def _last_to_change(
        self, guilty: Hidden, writes: list[tuple[int, Hidden]], saved: Tensor
    ) -> Hidden | None:
        """The last write that found the memory as the first one did: what those between had
        changed was put back.  None where writes after it were dropped."""
        like = [(n, h) for n, h in writes if h is guilty or _same_before(h, guilty)]
        number, last = like[-1]
        for place in (storage(saved), address(saved)):
            gap, there = self._gaps.get(place), self._at.get(place, [])
            if gap is not None and number in there and there.index(number) + 1 == gap.position:
                return None
        return last


class _Gap(NamedTuple):
    """Writes at a place were dropped: in its list those from `position` on came after the gap;
    nodes from `nodes` on are younger than all that were dropped."""

    position: int
    nodes: int


def _first_of_each_part(writes: list[tuple[int, Hidden]]) -> Iterator[Hidden]:
    seen = set()
    for _, write in writes:
        part = write.before.region if isinstance(write.before, Content) else write.way
        if part not in seen:
            seen.add(part)
            yield write


def _same_before(one: Hidden, other: Hidden) -> bool:
    a, b = one.before, other.before
    if isinstance(a, Content) and isinstance(b, Content):
        same_part = (a.region.sizes, a.region.strides) == (b.region.sizes, b.region.strides)
        return same_part and a.values.shape == b.values.shape and agree(a.values, b.values)
    return isinstance(a, int) and a == b


def _size(write: Hidden) -> int:
    return write.before.bytes if isinstance(write.before, Content) else 0
