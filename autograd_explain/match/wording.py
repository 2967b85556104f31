"""One wording of one torch message, compiled so that its beginning suffices.

A template is the message as torch writes it with `{name}` or `{name:kind}` for what varies.  It is
cut into segments at the ends of its clauses.  The first segment (the head) must be there, every
later one may be: users quote the beginning of a message, releases change its last sentence, and a
C++ stack may follow.  The further a wording agrees, the more specific it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, takewhile

_HOLE = re.compile(r"\{(\w*)(?::(\w+))?\}")
_CUT = re.compile(r"(?<=[.!?:;,])\s+|\s*\n\s*|\s+(?=\()|\s+(?=- )")

#: What a hole may hold.  A terminal may have broken a text into two lines.
KINDS = {
    "int": r"-?\d+",
    "word": r"[^\s'\"`]+?",
    "text": r"[^\n]+?(?:\n[^\n]+?)??",
    "lines": r"[\s\S]+?",
    "any": r"[\s\S]*?",
    "prefix": r"(?:\w+\.)?",
}
_PARAGRAPH = r"[\s\S]+?(?=\n\s*\n|\Z)"
#: At the end of a segment a hole takes all it can, up to the line's or paragraph's end.
LAST_KINDS = {**KINDS, "word": r"[^\s'\"`]+", "text": r"[^\n]+", "lines": _PARAGRAPH, "any": ""}

#: Before a hole that begins a message only the error's class is not part of the value.
_CLASS = r"(?:[^\n]*?(?:Error|Warning|Exception): )?"
#: A line end may have become anything in a terminal, a log or a JSON string.
_SPACE = r"(?:\s|\\[nrt])+"
_END = r"(?=[\s\\\"']|$)"
HEAD_LETTERS = 28
HEAD_WORDS = 4
#: A hole without an end of its own needs so many letters behind it, or it would end too early.
CLOSING_LETTERS = 4


@dataclass(frozen=True)
class Fragment:
    """A stretch of literal text, or a hole where `name` is set."""

    text: str = ""
    name: str = ""
    kind: str = ""


Segment = tuple[Fragment, ...]


@dataclass(frozen=True)
class Owner:
    """A row of the message list that has this wording; `torch` is "" for the current one."""

    id: str
    exception: str
    family: str
    likelihood: str
    torch: str = ""

    @property
    def rank(self) -> tuple[int, bool]:
        """Smaller is more plausible: a common message's old wording beats a rare current one."""
        level = ("common", "occasional", "rare").index(self.likelihood)
        return level + bool(self.torch), bool(self.torch)


@dataclass(frozen=True)
class Hit:
    """Where and how far a wording agrees with a text.

    `literals` counts the letters of the wording itself that were found: the measure of being
    specific.  `complete` says that nothing of it was missing.
    """

    start: int
    end: int
    captures: Mapping[str, str]
    literals: int
    complete: bool


@dataclass(frozen=True)
class Wording:
    """A template and the rows that share it, the most plausible first."""

    template: str
    owners: tuple[Owner, ...]

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        return tuple(_segments(_pieces(self.template)))

    @cached_property
    def literals(self) -> tuple[str, ...]:
        """The literal parts of the head, white space collapsed."""
        texts = (" ".join(piece.text.split()) for piece in self.segments[0] if not piece.name)
        return tuple(text for text in texts if text)

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """Literal letters up to the end of each segment."""
        own = (sum(len(p.text.strip()) for p in segment) for segment in self.segments)
        return tuple(accumulate(own))

    @cached_property
    def regex(self) -> re.Pattern[str]:
        """Nested options, each ending in an empty group, so that the last group tells how far."""
        *optional, last = (_expression(s) for s in reversed(self.segments))
        nested = ""
        for expression in optional:
            nested = f"(?:{_SPACE}?{expression}(){nested})?"
        first = self.segments[0][0]
        lead = r"(?<![^\W_])" if first.text[:1].isalnum() else ""
        return re.compile(f"{_CLASS if first.kind == 'text' else lead}{last}(){nested}")

    @cached_property
    def _marks(self) -> Mapping[int, int]:
        """The empty group's number at the end of each segment -> the number of segments."""
        counts = (sum(bool(p.name) for p in segment) + 1 for segment in self.segments)
        return {group: number for number, group in enumerate(accumulate(counts), 1)}

    def find(self, text: str) -> Hit | None:
        """The first place where at least the head stands in `text`."""
        found = self.regex.search(text)
        if found is None or found.lastindex is None:
            return None
        number = self._marks[found.lastindex]
        captures = {
            name.lstrip("_"): value.strip()
            for name, value in found.groupdict().items()
            if value is not None
        }
        first = self.segments[0][0]
        start = found.start(_group(first.name)) if first.name else found.start()
        complete = number == len(self.segments)
        more = 0 if complete else _agreement(self.segments[number], text[found.end() :][:200])
        return Hit(start, found.end(), captures, self.lengths[number - 1] + more, complete)


def _agreement(segment: Segment, text: str) -> int:
    """Letters with which a message that breaks off within a clause still agrees."""
    expected, rest = " ".join(segment[0].text.split()), " ".join(text.split())
    return sum(1 for _ in takewhile(bool, map(str.__eq__, expected, rest)))


def _pieces(template: str) -> list[Fragment]:
    pieces, position, unnamed = [], 0, 0
    for hole in _HOLE.finditer(template):
        if hole.start() > position:
            pieces.append(Fragment(template[position : hole.start()]))
        name, kind = hole.group(1), hole.group(2) or "text"
        if not name:
            name, unnamed = str(unnamed), unnamed + 1
        pieces.append(Fragment(name=name, kind=kind))
        position = hole.end()
    if position < len(template):
        pieces.append(Fragment(template[position:]))
    return pieces


def _segments(pieces: list[Fragment]) -> list[Segment]:
    """Cut behind clauses, the first time where the head says enough to be told apart."""
    segments: list[Segment] = []
    current: list[Fragment] = []
    for piece in pieces:
        rest = piece
        while not rest.name and (cut := _cut(current, rest, first=not segments)) is not None:
            before, after = rest.text[: cut.start()], rest.text[cut.end() :]
            segments.append((*current, Fragment(before)) if before else tuple(current))
            current, rest = [], Fragment(after)
        if rest.name or rest.text:
            current.append(rest)
    if current:
        segments.append(tuple(current))
    return segments


def _cut(current: list[Fragment], piece: Fragment, first: bool) -> re.Match[str] | None:
    for cut in _CUT.finditer(piece.text):
        if cut.end() == len(piece.text) and piece.text[cut.start() - 1 : cut.start()] != ".":
            continue  # "… shape:" belongs to the value behind it
        before = piece.text[: cut.start()]
        if not before and not current:
            continue
        letters = "".join(p.text for p in current) + before
        if _endless(current) and sum(map(str.isalnum, before)) < CLOSING_LETTERS:
            continue
        if not first or (len(letters) >= HEAD_LETTERS and len(letters.split()) >= HEAD_WORDS):
            return cut
    return None


def _endless(pieces: list[Fragment]) -> bool:
    return bool(pieces) and pieces[-1].kind in ("text", "lines", "any")


def _expression(segment: Segment) -> str:
    last = len(segment) - 1
    parts = [
        _literal(piece.text)
        if not piece.name
        else f"(?P<{_group(piece.name)}>{(LAST_KINDS if i == last else KINDS)[piece.kind]})"
        for i, piece in enumerate(segment)
    ]
    closing = segment[-1].text
    if _endless(list(segment[:-1])) and closing and not any(map(str.isalnum, closing)):
        parts.append(_END)  # the full stop behind a value, not one within it
    return "".join(parts)


def _group(name: str) -> str:
    return f"_{name}" if name[0].isdigit() else name


def _literal(text: str) -> str:
    lead = _SPACE if text[:1].isspace() else ""
    tail = _SPACE if text[-1:].isspace() and text.strip() else ""
    return lead + _SPACE.join(map(re.escape, text.split())) + tail
