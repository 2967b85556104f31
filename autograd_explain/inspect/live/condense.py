"""A graph of any size as few rows: what repeats stands once.

The rows of a graph stand in the order of time.  A stretch of them that comes again at once (the
layers of a network, the steps of a loop) is told once with how often it came, and so are
stretches of such stretches.  Names that differ in a number alone are one name: `layers[0…11]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ...model import Place

#: Rows of a graph that are shown; of a longer one its beginning and its end.
MOST_ROWS = 60
_LONGEST_PERIOD = 64
_SWEEPS = 40
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class Operation:
    """A node by torch's name without `Backward0`, and what the user calls its result."""

    name: str
    results: tuple[str, ...] = ()


@dataclass(frozen=True)
class Overwritten:
    """A value that a node has saved and that was written since, at lines known or not."""

    slot: str
    saved: int
    now: int
    writers: tuple[Place, ...] = ()


@dataclass(frozen=True)
class GraphRow:
    """Operations one after another, each the one user of the one before.

    `inputs` are the positions of the rows whose results they use, all before their own; `leaves`
    the names of the leaves that they read.  `times`: how often it comes, each time that the rows
    around it come.  Without operations it is no part of the graph: `repeats` says that the next so
    many rows come `times` times, `left_out` that so many rows are not shown.
    """

    operations: tuple[Operation, ...]
    leaves: tuple[str, ...] = ()
    inputs: tuple[int, ...] = ()
    place: Place | None = None
    overwritten: tuple[Overwritten, ...] = ()
    freed: bool = False
    asked: bool = False
    times: int = 1
    repeats: int = 0
    left_out: int = 0


@dataclass(frozen=True)
class _Item:
    """One row, or a stretch of `body` that comes `times` times; `size` rows from `first` on."""

    first: int
    size: int = 1
    body: tuple[_Item, ...] = ()
    times: int = 1


def condense(rows: Sequence[GraphRow], most: int = MOST_ROWS) -> tuple[GraphRow, ...]:
    """The rows with each repetition told once, at most about so many."""
    items = _shortened(_Folding(rows).items(), rows, most)
    return tuple(_Writing(rows).written(items))


class _Folding:
    """Finds what repeats; the shortest stretches first, so that longer ones are made of them."""

    def __init__(self, rows: Sequence[GraphRow]) -> None:
        self._rows = rows
        kinds: dict[object, int] = {}
        self._kind = [kinds.setdefault(_kind(n, row), len(kinds)) for n, row in enumerate(rows)]

    def items(self) -> list[_Item]:
        items = [_Item(n) for n in range(len(self._rows))]
        period, sweeps = 1, 0
        while period <= _LONGEST_PERIOD and sweeps < _SWEEPS:
            before = len(items)
            items = self._folded(items, period)
            # What was folded may stand side by side with its like: the shortest come first again.
            folds = len(items) < before
            period, sweeps = (1, sweeps + 1) if folds else (period + 1, sweeps)
        return items

    def _folded(self, items: list[_Item], period: int) -> list[_Item]:
        found: list[_Item] = []
        at = 0
        while at < len(items):
            times = self._times(items, at, period)
            body = tuple(items[at : at + period])
            if times > 1:
                found.append(_Item(body[0].first, times * sum(i.size for i in body), body, times))
                at += times * period
            else:
                found.append(items[at])
                at += 1
        return found

    def _times(self, items: list[_Item], at: int, period: int) -> int:
        times = 1
        while at + (times + 1) * period <= len(items) and all(
            self._alike(items[n], items[n + times * period]) for n in range(at, at + period)
        ):
            times += 1
        return times

    def _alike(self, one: _Item, other: _Item) -> bool:
        if (one.times, one.size) != (other.times, other.size):
            return False
        if self._kind[one.first] != self._kind[other.first]:
            return False
        if one.body:
            return all(map(self._alike, one.body, other.body))
        if not self._may_be_of_one_line(self._rows[one.first], self._rows[other.first]):
            return False
        shift = other.first - one.first
        pairs = zip(self._rows[one.first].inputs, self._rows[other.first].inputs, strict=True)
        return all(b - a in (0, shift) for a, b in pairs)

    @staticmethod
    def _may_be_of_one_line(first: GraphRow, other: GraphRow) -> bool:
        """A line that is not known is that of the first repetition, where this is known."""
        if other.place is None:
            return True
        return first.place is not None and first.place.line_id == other.place.line_id


def _kind(number: int, row: GraphRow) -> object:
    """What rows have in common that may be told as one; a marked row stands for itself."""
    if row.overwritten or row.asked:
        return number
    leaves = tuple(_NUMBER.sub("0", leaf) for leaf in row.leaves)
    operations = tuple(operation.name for operation in row.operations)
    return operations, leaves, row.freed, len(row.inputs)


def _shortened(items: list[_Item], rows: Sequence[GraphRow], most: int) -> list[_Item | int]:
    """Of many items the first, the last and the marked ones; numbers stand for rows left out."""
    if len(items) <= most:
        return list(items)
    half = most // 2
    found: list[_Item | int] = []
    for number, item in enumerate(items):
        row = rows[item.first]
        if number < half or number >= len(items) - half or row.overwritten or row.asked:
            found.append(item)
        elif found and isinstance(found[-1], int):
            found[-1] += item.size
        else:
            found.append(item.size)
    return found


class _Writing:
    """Writes items as rows, and knows which row each of the graph's rows has become."""

    def __init__(self, rows: Sequence[GraphRow]) -> None:
        self._rows = rows
        self._became: dict[int, int] = {}
        self._written: list[GraphRow] = []

    def written(self, items: Iterable[_Item | int]) -> list[GraphRow]:
        at = 0
        for item in items:
            if isinstance(item, int):
                self._leave_out(range(at, at + item))
                at += item
            else:
                self._write(item, (0,))
                at += item.size
        return [self._with_inputs(n, row) for n, row in enumerate(self._written)]

    def _leave_out(self, positions: range) -> None:
        self._became.update(dict.fromkeys(positions, len(self._written)))
        inputs = {i for n in positions for i in self._rows[n].inputs}
        self._written.append(GraphRow((), inputs=tuple(sorted(inputs)), left_out=len(positions)))

    def _write(self, item: _Item, shifts: Sequence[int], times: int = 1) -> None:
        if not item.body:
            positions = [item.first + shift for shift in shifts]
            self._became.update(dict.fromkeys(positions, len(self._written)))
            one = _as_one([self._rows[n] for n in positions])
            self._written.append(replace(one, times=times))
            return
        step = item.size // item.times
        inner = [shift + step * n for shift in shifts for n in range(item.times)]
        times *= item.times
        if len(item.body) > 1:
            count = sum(map(_height, item.body))
            self._written.append(GraphRow((), times=times, repeats=count))
            times = 1
        for part in item.body:
            self._write(part, inner, times)

    def _with_inputs(self, number: int, row: GraphRow) -> GraphRow:
        # What one repetition hands to the next is no way down: it stands once.
        inputs = {self._became[i] for i in row.inputs}
        return replace(row, inputs=tuple(sorted(i for i in inputs if i < number)))


def _height(item: _Item) -> int:
    """How many rows an item is written as."""
    return (len(item.body) > 1) + sum(map(_height, item.body)) if item.body else 1


def _as_one(rows: Sequence[GraphRow]) -> GraphRow:
    """Rows of one kind as one, the first's inputs with those of the others."""
    first = rows[0]
    if len(rows) == 1:
        return first
    operations = tuple(
        Operation(one.name, _results([row.operations[n] for row in rows]))
        for n, one in enumerate(first.operations)
    )
    leaves = tuple(_one_name([row.leaves[n] for row in rows]) for n in range(len(first.leaves)))
    inputs = tuple(sorted({i for row in rows for i in row.inputs}))
    return replace(first, operations=operations, leaves=leaves, inputs=inputs)


def _results(operations: Sequence[Operation]) -> tuple[str, ...]:
    """The names of results: as one where each repetition has one of a kind (`outs[0…11]`), else
    each with which of the repetitions it is of."""
    every = [name for operation in operations for name in operation.results[:1]]
    if len(every) == len(operations) and len({_NUMBER.sub("0", name) for name in every}) == 1:
        return (_one_name(every),)
    count = len(operations)
    return tuple(f"{name} {n}/{count}" for n, o in enumerate(operations, 1) for name in o.results)


def _one_name(names: Sequence[str]) -> str:
    """`net[0].weight`, `net[1].weight` … as `net[0…1].weight`."""
    numbers = list(zip(*(_NUMBER.findall(name) for name in names), strict=True))
    ranges = iter(
        n[0] if len(set(n)) == 1 else f"{min(n, key=int)}…{max(n, key=int)}" for n in numbers
    )
    return _NUMBER.sub(lambda _: next(ranges), names[0])
