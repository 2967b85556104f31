"""Edits as values: applied to a program, followed from an old line to the new one, merged."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ...model import Edit, Edits, Place, Span, lines_of
from ...program import Program, Source
from .draft import is_program, python_of

Key = tuple[int | None, str | None]
Step = Callable[[Program, Place], Edits | None]


class EditedProgram(Program):
    """A program with edits applied; its files are the edited texts, not what is on disk."""

    def __init__(self, base: Program, changed: Mapping[Key, Source]) -> None:
        cells = (changed.get((c.cell, c.file), c) for c in base.cells)
        super().__init__(cells, running=base.running)
        self.origin = base.origin
        self._base = base
        self._changed = dict(changed)

    def source(self, filename: str) -> Source | None:
        changed = next((s for s in self._changed.values() if s.filename == filename), None)
        return changed or super().source(filename) or self._base.source(filename)

    @property
    def files(self) -> tuple[Source, ...]:
        known = (self.source(file.filename) for file in self._base.files)
        return tuple(dict.fromkeys(s for s in (*known, *super().files) if s is not None))


@dataclass(frozen=True)
class Edited:
    """A program after some edits, and where its lines have gone."""

    program: Program
    edits: Edits
    changed: Sequence[tuple[Source, Source]] = ()  #: each text as it was and as it is

    def place(self, place: Place) -> Place | None:
        """Where the statement at `place` stands now; None where its line is gone or rewritten
        beyond recognition."""
        edit = next((e for e in self.edits if _key(e) == (place.cell, place.file)), None)
        if edit is None:
            return place
        line = _follow(edit, place.line)
        if line is not None:
            return _placed(place, edit, line)
        for other in self.edits:  # moved to another cell
            added = _added(other)
            moved = [n for n, text in added.items() if text.strip() == place.source.strip()]
            if other is not edit and len(moved) == 1:
                return _placed(place, other, moved[0])
        return None


def apply(program: Program, edits: Iterable[Edit] | None) -> Edited | None:
    """The program with edits applied, so that a next transformer can go on from there.

    None where an edit does not fit the program's text.  In edited sources `python` is the text
    with magics masked, line by line the same.
    """
    if edits is None:
        return None
    edits = tuple(edits)
    changed: dict[Key, Source] = {}
    pairs = []
    for edit in edits:
        old = _source(program, edit)
        if old is None or old.text != edit.old_source:
            return None
        changed[_key(edit)] = _new_source(old, edit.new_source)
        pairs.append((old, changed[_key(edit)]))
    return Edited(EditedProgram(program, changed), edits, pairs)


def then(
    program: Program,
    edits: Iterable[Edit] | None,
    step: Callable[..., Edits | None],
    *places: Place,
) -> Edits | None:
    """`edits`, and on top of them those of `step(edited_program, *places)`, as one rewrite.

    The places are followed to where their statements stand after the first edits.
    """
    first = None if edits is None else tuple(edits)
    if first == ():
        return step(program, *places)
    edited = apply(program, first)
    if edited is None:
        return None
    followed = [edited.place(place) for place in places]
    if any(place is None for place in followed):
        return None
    return merge(first, step(edited.program, *followed))


def each(program: Program, steps: Iterable[tuple[Step, Place]]) -> Edits | None:
    """Steps at places of the program as it is, one on top of the other, as one rewrite.  None
    where one of them cannot be made, and where there is none."""
    edits: Edits | None = ()
    for step, place in steps:
        edits = then(program, edits, step, place)
    return edits or None


def merge(*groups: Iterable[Edit] | None) -> Edits | None:
    """Several rewrites as one; None where one is None or two change the same lines.

    A group may have been made on the original program or on the program with the groups before
    it applied.
    """
    merged: dict[Key, Edit] = {}
    for group in groups:
        if group is None:
            return None
        for edit in group:
            earlier = merged.get(_key(edit))
            both = edit if earlier is None else _both(earlier, edit)
            if both is None:
                return None
            merged[_key(edit)] = both
    return tuple(e for e in merged.values() if e.old_source != e.new_source)


def _key(edit: Edit) -> Key:
    return edit.cell, edit.file


def _source(program: Program, edit: Edit) -> Source | None:
    return program.cell(edit.cell) if edit.cell is not None else program.source(edit.file or "")


def _new_source(old: Source, text: str) -> Source:
    python = text if old.cell is None else python_of(text)
    return Source(old.cell, old.file, text, python, old.filename)


def _both(first: Edit, second: Edit) -> Edit | None:
    if second.old_source == first.new_source:
        new: str | None = second.new_source
    elif second.old_source == first.old_source:
        new = _merged_text(first.old_source, first.new_source, second.new_source)
    else:
        new = None
    if new is None:
        return None
    return Edit(first.cell, first.file, first.old_source, new)


def _hunks(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int, list[str]]]:
    return [(a, b, list(new[c:d])) for tag, a, b, c, d in _opcodes(old, new) if tag != "equal"]


def _opcodes(old: Sequence[str], new: Sequence[str]) -> list[tuple[str, int, int, int, int]]:
    return difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()  # type: ignore[return-value]


def _merged_text(old: str, left: str, right: str) -> str | None:
    """Both changes made to one text; None where they meet or the result is no program."""
    lines = lines_of(old, keepends=True)
    hunks = _hunks(lines, lines_of(left, keepends=True))
    for hunk in _hunks(lines, lines_of(right, keepends=True)):
        if hunk not in hunks:
            hunks.append(hunk)
    hunks.sort(key=lambda h: h[:2])
    for (first, end, _), (start, last, _) in itertools.pairwise(hunks):
        inserts = first == end or start == last  # which of two comes first at one point is open
        if start < end or (start == end and inserts):
            return None
    for start, end, new in reversed(hunks):
        lines[start:end] = new
    text = "".join(lines)
    return text if is_program(text) else None


def _added(edit: Edit) -> dict[int, str]:
    """The new lines of an edit by their number, from 1."""
    old, new = lines_of(edit.old_source), lines_of(edit.new_source)
    codes = _opcodes(old, new)
    return {n + 1: new[n] for tag, *_, c, d in codes if tag != "equal" for n in range(c, d)}


def _follow(edit: Edit, line: int) -> int | None:
    """The number of a line after the edit."""
    old, new = lines_of(edit.old_source), lines_of(edit.new_source)
    if not 0 < line <= len(old):
        return None
    wanted = old[line - 1].strip()
    block: range = range(0)
    for tag, a, b, c, d in _opcodes(old, new):
        if a < line <= b:
            if tag == "equal":
                return c + line - a
            block = range(c, d)
    same = [n for n in block if new[n].strip() == wanted]
    if len(same) == 1:
        return same[0] + 1
    moved = [n for n, text in _added(edit).items() if text.strip() == wanted]
    if len(moved) == 1:
        return moved[0]
    return _most_alike(wanted, [(n + 1, new[n].strip()) for n in block])


def _most_alike(wanted: str, lines: list[tuple[int, str]]) -> int | None:
    ratios = [(difflib.SequenceMatcher(None, wanted, text).ratio(), n) for n, text in lines]
    best = max(ratios, default=(0.0, 0))
    clear = sum(ratio > best[0] - 0.05 for ratio, _ in ratios) == 1
    return best[1] if best[0] >= 0.6 and clear else None


def _placed(place: Place, edit: Edit, line: int) -> Place:
    old, new = lines_of(edit.old_source)[place.line - 1 :], lines_of(edit.new_source)
    before, after = old[0] if old else place.source, new[line - 1]
    indent, whole = len(after) - len(after.lstrip()), before.strip() == after.strip()
    span = place.span if whole else None
    if span is not None:  # moved as far as its line
        down, right = line - place.line, len(after.rstrip()) - len(before.rstrip())
        first, last = (span.line + down, span.column + right), span.end_line + down
        span = Span(*first, last, span.end_column + right)
    return Place(edit.cell, edit.file, line, after.strip(), place.function, span, indent)
