"""The graph beside the report's lines: which lanes run past a line, and which end in it.

Time runs downwards, as in the program; a lane carries what a line has computed to the last line
that uses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WIDEST = 4  #: lanes beside a report; a wider picture tells nothing at a glance


@dataclass(frozen=True)
class Rail:
    """What is drawn beside one line.

    `lane` is that of its own mark, None where only others pass; `above` and `below` are the lanes
    that come in and go on; `joins` those whose values the line uses.
    """

    lane: int | None
    above: tuple[int, ...]
    below: tuple[int, ...]
    joins: tuple[int, ...]
    width: int


def rails_of(
    numbers: Sequence[int | None], inputs: Sequence[Sequence[int]], widest: int = WIDEST
) -> tuple[Rail, ...]:
    """A rail for each row of a listing; () where they would be too wide.

    `numbers` are the nodes that the rows stand for, None where a row stands for none; `inputs` the
    nodes that each node uses, which stand above it.
    """
    row_of = {number: row for row, number in enumerate(numbers) if number is not None}
    last = {i: row_of[n] for n in row_of for i in inputs[n] if i in row_of}
    for n in sorted(row_of, key=lambda n: row_of[n]):
        last.update({i: row_of[n] for i in inputs[n]})
    lanes: dict[int, int] = {}  # of the nodes whose values are still to be used
    drawn: list[Rail] = []
    for row, number in enumerate(numbers):
        above = _taken(lanes)
        joins = sorted(lanes[i] for i in inputs[number] if i in lanes) if number is not None else ()
        lanes = {n: lane for n, lane in lanes.items() if last[n] > row}
        own = None
        if number is not None:
            own = next(lane for lane in range(len(lanes) + 1) if lane not in lanes.values())
            if number in last:
                lanes[number] = own
        drawn.append(Rail(own, above, _taken(lanes), tuple(joins), 0))
    width = 1 + max((lane for r in drawn for lane in (*r.above, *r.below, r.lane or 0)), default=0)
    if width > widest:
        return ()
    return tuple(Rail(r.lane, r.above, r.below, r.joins, width) for r in drawn)


def _taken(lanes: dict[int, int]) -> tuple[int, ...]:
    return tuple(sorted(set(lanes.values())))


def as_text(rail: Rail, mark: str) -> tuple[str, str]:
    """The rail beside the line of code, and that beside what stands under it."""
    cells = [" "] * (2 * rail.width)
    for lane in rail.above:
        cells[2 * lane] = "│" if lane in rail.below else " "
    reached = [lane for lane in rail.joins if lane != rail.lane]
    if rail.lane is not None:
        for lane in reached:
            _across(cells, lane, rail.lane, lane in rail.below)
        cells[2 * rail.lane] = mark
    under = "".join("│ " if lane in rail.below else "  " for lane in range(rail.width))
    return "".join(cells), under


def _across(cells: list[str], lane: int, own: int, goes_on: bool) -> None:
    """A line from a lane to the mark."""
    for at in range(2 * min(lane, own) + 1, 2 * max(lane, own)):
        cells[at] = "┼" if cells[at] == "│" else "─"
    corners = ("┤", "╯") if lane > own else ("├", "╰")
    cells[2 * lane] = corners[0 if goes_on else 1]
