"""The lines of a report with those of the graph between them, and the graph drawn beside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..model import GraphLine
from .labels import label, source
from .rails import rails_of
from .rows import Row, row_at
from .texts import Passage
from .texts import line as text_line

_MOST_NAMES = 3


def with_graph(
    rows: tuple[Row, ...], graph: Sequence[GraphLine], language: str, root: str = ""
) -> tuple[Row, ...]:
    """The rows as they are where the graph would say nothing more, or another order; `root` is the
    name by which the whole graph can be asked for."""
    if len(graph) < 2:
        return rows
    merged = list(rows)
    numbers: dict[int, int] = {}  # position in the graph by the row's identity
    before = -1
    for number, line in enumerate(graph):
        at = next((i for i, row in enumerate(merged) if _is_row_of(row, line)), None)
        if at is None:
            at = before + 1
            first = not any(row.tone == "path" for row in merged)
            merged.insert(at, _row_of(line, language, first, root))
        elif at < before:
            return rows
        else:
            told = _with_more(merged[at].label, line, language)
            merged[at] = replace(merged[at], label=told)
        numbers[id(merged[at])] = number
        before = at
    return _drawn(merged, numbers, graph) or rows


def _is_row_of(row: Row, line: GraphLine) -> bool:
    return line.place is not None and row.at == line.place.line_id


def _row_of(line: GraphLine, language: str, first: bool, root: str) -> Row:
    if line.place is None:
        more = label("more_lines", language, count=line.count, root=root)
        return replace(row_at(None, more, "path", language), certainty="")
    said = label("path", language) if first else Passage()
    return row_at(line.place, _with_more(said, line, language), "path", language)


def _with_more(said: Passage, line: GraphLine, language: str) -> Passage:
    """A label, then the leaves that its line reads and how often it ran."""
    names = ", ".join(line.leaves[:_MOST_NAMES]) + (" …" if line.leaves[_MOST_NAMES:] else "")
    facts = {"leaves": names, "count": str(line.count)}
    told = {
        "path_leaves": bool(names),
        "path_count": line.count > 1,
        "path_freed": line.freed == "all",
        "path_freed_first": line.freed == "first",
    }
    for key, known in told.items():
        if known:
            text = source(key, language)
            after = text_line(source("semicolon", language) + text, facts)
            said = said.then(after) if said else text_line(text, facts)
    return said


def _drawn(rows: list[Row], numbers: dict[int, int], graph: Sequence[GraphLine]) -> tuple[Row, ...]:
    inputs: list[Sequence[int]] = [line.inputs for line in graph]
    drawn = [numbers.get(id(row)) for row in rows]
    if drawn[-1] is None and rows[-1].tone == "needed":  # the backward, from the loss on
        used = {i for line in graph for i in line.inputs}
        ends = [n for n, line in enumerate(graph) if n not in used and (line.inputs or not n)]
        drawn[-1] = len(inputs)
        inputs.append(ends)
    rails = rails_of(drawn, inputs)
    return tuple(replace(row, rail=rail) for row, rail in zip(rows, rails, strict=False))
