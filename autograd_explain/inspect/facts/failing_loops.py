"""The loops around the failing lines: which earlier moments are rounds of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ...incident import LiveFrame
from ...model import Place
from ...program import Source, called_name
from ...program_index import ProgramIndex
from ..history import TraceEvent
from ..scene import Scene
from .call_levels import Path

Home = tuple[int | None, str | None]


@dataclass(frozen=True, eq=False)
class Loop:
    """A loop around a failing line, from the line of its `for` or `while` to its last one.

    `homes` are the cells (or the file) of its text: equal cells are one text that ran again.
    """

    node: ast.For | ast.While
    offset: int
    homes: frozenset[Home]

    @property
    def first(self) -> int:
        return self.node.lineno + self.offset

    def is_of(self, place: Place) -> bool:
        """Whether a place is of the text that the loop stands in."""
        return (place.cell, place.file) in self.homes

    def holds(self, place: Place) -> bool:
        """Whether a place is in its body."""
        last = (self.node.end_lineno or self.node.lineno) + self.offset
        return self.is_of(place) and self.first < place.line <= last


@dataclass(frozen=True, eq=False)
class FailingLoops:
    """The loops around the lines of a failure; `path` are these lines, outermost first."""

    path: Path
    loops: tuple[Loop, ...]

    def __bool__(self) -> bool:
        return bool(self.loops)

    @property
    def innermost(self) -> Loop | None:
        """The innermost loop around the line that raised."""
        return self.around(self.path[-1]) if self.path else None

    def hold(self, moment: TraceEvent) -> bool:
        """Whether a moment happened inside one of them, directly or in a call."""
        return any(loop.holds(place) for place in moment.path for loop in self.loops)

    def begin_after(self, moment: TraceEvent) -> bool:
        """Whether a moment came before the inner loop, in a round of one around that.

        `for epoch: draw(); for batch: …`: once for all rounds of the inner loop; so it is in
        `update(draw())` where that loop is one of the function `update`.
        """
        parting = self._parting(moment)
        if parting is None:
            return False
        level, made, failed = parting
        inner = self.around(failed)
        apart = made.function_id != failed.function_id
        return inner is not None and (level > 0 if apart else made.line < inner.first)

    def called_after(self, moment: TraceEvent) -> bool:
        """Whether a moment came before the call, in the text of the same round, of a function whose
        loop failed: `for …: data = collect(); update(data)`."""
        parting = self._parting(moment)
        if parting is None:
            return False
        level, made, failed = parting
        same = made.function_id == failed.function_id and made.line < failed.line
        return same and any(map(self.around, self.path[level + 1 :]))

    def _parting(self, moment: TraceEvent) -> tuple[int, Place, Place] | None:
        """How deep, and where, the calls that led to a moment part from those that led to the
        failure; None where they do not."""
        for level, (made, failed) in enumerate(zip(moment.path, self.path, strict=False)):
            if (made.function_id, made.line) != (failed.function_id, failed.line):
                return level, made, failed
        return None

    def around(self, place: Place) -> Loop | None:
        """The innermost loop that holds a place."""
        around = (loop for loop in self.loops if loop.holds(place))
        return max(around, key=lambda loop: loop.first, default=None)


def failing_loops(scene: Scene) -> FailingLoops:
    """The loops around the failing lines of all of the user's frames."""
    return FailingLoops(scene.path, tuple(_loops(scene)))


def _loops(scene: Scene) -> Iterator[Loop]:
    for live in scene.incident.user_frames:
        source = scene.program.source_of(live.code)
        if source is not None:
            homes = _homes(scene.index, source)
            yield from (Loop(n, source.offset, homes) for n in loops_around(source, live.line))


def loops_around(source: Source, line: int) -> Iterator[ast.For | ast.While]:
    """The loops around a line of a source, as a frame counts it."""
    for node in source.nodes:
        if isinstance(node, (ast.For, ast.While)):
            if node.lineno < line <= (node.end_lineno or node.lineno):
                yield node


def inner_loop(scene: Scene) -> ast.For | ast.While | None:
    """The innermost loop around the failing line in the function that it stands in."""
    live = scene.incident.user_frames[-1]
    source = scene.program.source_of(live.code)
    loops = [] if source is None else loops_around(source, live.line)
    return max(loops, key=lambda loop: loop.lineno, default=None)


def given_by_round(scene: Scene) -> frozenset[str]:
    """The names to which that loop gives a value at the beginning of each round."""
    target = getattr(inner_loop(scene), "target", None)
    inside = () if target is None else ast.walk(target)
    return frozenset(n.id for n in inside if isinstance(n, ast.Name))


def _homes(index: ProgramIndex, source: Source) -> frozenset[Home]:
    equal = (run for run in index.runs if run.filename == source.filename)
    return frozenset((s.cell, s.file) for s in (source, *equal))


def has_not_run(scene: Scene, place: Place | None) -> bool:
    """Whether a place lies behind the failing line in its loop, and that line was met for the first
    time: nothing has got there yet."""
    loops = failing_loops(scene)
    inner = loops.innermost
    if place is None or inner is None or not inner.holds(place):
        return False
    failed = loops.path[-1]
    behind = place.function_id == failed.function_id and place.line > failed.line
    return behind and all(_is_first_time(scene, live) for live in scene.incident.user_frames)


def _is_first_time(scene: Scene, live: LiveFrame) -> bool:
    """Whether a frame's line is met for the first time: its cell ran once, or one call in the
    program leads to its function, and the live counters of the loops around it say so."""
    source, place = scene.program.source_of(live.code), scene.incident.place_of(live)
    if source is None or place is None:
        return False
    if place.function is None:
        times = len(scene.index.runs_of(source.text))
    else:
        times = len(list(scene.index.calls(place.function)))
    loops = loops_around(source, live.line)
    return times == 1 and all(_is_first_round(loop, live.frame.f_locals) for loop in loops)


def _is_first_round(loop: ast.For | ast.While, names: Mapping[str, object]) -> bool:
    """`for i in range(n)` and `for i, x in enumerate(xs)` with an `i` of 0."""
    if isinstance(loop, ast.While) or not isinstance(loop.iter, ast.Call):
        return False
    pair = getattr(loop.target, "elts", [None])
    counter = {"range": loop.target, "enumerate": pair[0]}.get(called_name(loop.iter))
    if not isinstance(counter, ast.Name) or len(loop.iter.args) != 1 or loop.iter.keywords:
        return False
    value = names.get(counter.id)
    return type(value) is int and value == 0
