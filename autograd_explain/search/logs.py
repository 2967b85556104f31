"""Finds every autograd message in a log of any size, in one pass and bounded memory.

Bytes are searched for the gates (short fragments, one of which is in every message), and only the
neighbourhood of a gate is decoded and matched.  A message may go over several lines, each with the
prefix of a launcher or a logger, in colour, and with any line end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from ..match import Match, find_messages
from ..match.table import built_in, with_extra
from ..match.wording import Wording
from ..traceback_text import (
    HEAD,
    TextFrame,
    innermost_of_users,
    last_traceback,
    without_colour,
)
from .clean import rank_in, without_prefix

BLOCK = 1 << 20
#: How far a message is read from its beginning, and how far before a gate it may begin.
WINDOW, BEFORE = 6 << 10, 2 << 10
#: How far before a message its traceback may begin, those of other ranks among its lines.
AROUND = 64 << 10
#: How far from the gate the rest of a message's head can be, line prefixes included.
NEAR = 400
#: Different messages of one pattern that are told apart (say, in shape or operation).
MOST_VARIANTS = 100
MOST_DULL = 500
_DIGITS = b"0123456789."
#: What a process says whose partner has gone or did not come: gloo, NCCL, the store, elastic.
CONSEQUENCES = (
    *("Connection closed by peer", "Connection closed by remote peer", "Connection reset by peer"),
    *("Broken pipe", "Socket Timeout", "Socket closed", "recvValue failed", "wait timeout after "),
    *("Timed out waiting", "Timed out after", "ncclRemoteError", "remote process exited"),
    *("NCCL communicator was aborted", "caught collective operation timeout"),
    *("watchdog thread terminated", "got signal: 15"),
)
#: What stands in a line by which such an error is told.
_ERROR = re.compile(r"Error\b|Exception\b|\[E|\brank")
#: A line that only shows the program which raises: the message itself follows.
_SOURCE_LINE = re.compile(
    r"(?:\s|-+>).*(?<![:,=])(?<![:,=]\s)[rfbu]?[\"']\Z|.*\b(?:raise|warn)\b.*\([rfbu]?[\"']\Z"
)
#: As `warnings` prints where one was given.
_WARNED = re.compile(r"(?P<file>\S.*?):(?P<line>\d+): \w*Warning: ")


@dataclass(frozen=True)
class Sighting:
    """A message's first place in what one rank wrote: `frame` is the user's innermost line in the
    traceback above it, or the line that it warns of."""

    rank: int | None
    line: int
    frame: TextFrame | None


@dataclass
class Found:
    """A message of the log: what it says, how often, and where it stood first.

    `line` counts from 1, `offset` from 0 in bytes; both are of the message, not of its traceback.
    """

    match: Match
    line: int
    offset: int
    count: int = 1
    sightings: list[Sighting] = field(default_factory=list)


@dataclass
class LogReport:
    """What a log holds: its messages in the order of their first places.

    `consequences` are, by rank, the first lines that only say that another process has gone.
    """

    found: list[Found] = field(default_factory=list)
    lines: int = 0
    size: int = 0
    consequences: dict[int | None, str] = field(default_factory=dict)


def scan_file(path: str | Path, extra: Mapping[str, str] = {}) -> LogReport:
    """The messages of a log file."""
    with open(path, "rb") as stream:
        return scan(stream, extra)


def scan(stream: BinaryIO, extra: Mapping[str, str] = {}) -> LogReport:
    """The messages of a stream of bytes, read once from where it stands."""
    scanner = Scanner(extra)
    while block := stream.read(BLOCK):
        scanner.feed(block)
    return scanner.close()


class Scanner:
    """Takes a log in blocks of any size: `feed` them, then `close`."""

    def __init__(self, extra: Mapping[str, str] = {}) -> None:
        self._extra = dict(extra)
        index = with_extra(tuple(extra.items())) if extra else built_in()
        self._gates = {gate.encode(): _keys(known) for gate, known in index.by_gate.items()}
        self._buffer = b""
        self._report = LogReport()
        self._variants: dict[tuple[object, ...], Found] = {}
        self._dull: dict[bytes, set[bytes]] = {gate: set() for gate in self._gates}
        self._done = 0  # bytes of the buffer's beginning that were searched before
        self._ended = -1  # where in the log the last message ended

    def feed(self, block: bytes) -> None:
        """The next bytes of the log."""
        self._buffer += block
        if len(self._buffer) >= BLOCK:
            self._search(len(self._buffer) - WINDOW)

    def close(self) -> LogReport:
        """The log is over: what was found."""
        self._search(len(self._buffer))
        rest, self._buffer = self._buffer, b""
        self._report.lines += rest.count(b"\n") + (rest[-1:] not in (b"", b"\n"))
        self._report.size += len(rest)
        return self._report

    def _search(self, end: int) -> None:
        """Look at the buffer up to `end`, then forget what no later message can reach."""
        counted, lines = 0, self._report.lines
        for start, gates in sorted(self._suspects(self._done, end).items()):
            lines += self._buffer.count(b"\n", counted, start)
            counted = start
            head = self._head(start)
            gates = [gate for gate in gates if head not in self._dull[gate]]
            if gates and not self._look(start, lines + 1):
                for gate in gates:
                    self._bore(gate, start)
        self._note_consequences(self._done, end)
        keep = max(0, end - AROUND)
        self._report.lines += self._buffer.count(b"\n", 0, keep)
        self._report.size += keep
        self._buffer, self._done = self._buffer[keep:], end - keep

    def _suspects(self, begin: int, end: int) -> dict[int, list[bytes]]:
        """Where the lines begin that may hold the head of a message, and for which gates."""
        found: dict[int, list[bytes]] = {}
        buffer = self._buffer
        for gate, keys in self._gates.items():
            position = buffer.find(gate, begin, end)
            while position >= 0:
                start = _line_start(buffer, position)
                if self._head(start) not in self._dull[gate]:
                    if self._may_hold(position, keys):
                        found.setdefault(start, []).append(gate)
                    else:
                        self._bore(gate, start)
                next_line = buffer.find(b"\n", position)
                if next_line < 0:
                    break
                position = buffer.find(gate, next_line, end)
        return found

    def _may_hold(self, position: int, keys: tuple[tuple[bytes, bytes], ...]) -> bool:
        """A cheap test: both of a wording's longest words are near its gate."""
        near = self._buffer[max(0, position - NEAR) : position + NEAR]
        return any(first in near and second in near for first, second in keys)

    def _head(self, start: int) -> bytes:
        """A line without its numbers: logs say the same again and again."""
        line = self._buffer[start : start + NEAR]
        return line[: line.find(b"\n")].translate(None, _DIGITS)

    def _bore(self, gate: bytes, start: int) -> None:
        """Remember that such a line holds nothing behind this gate.

        Not of an error's line: the line before may decide whether it is autograd's.
        """
        dull, head = self._dull[gate], self._head(start)
        if b"Error: " in head:
            return
        if len(dull) >= MOST_DULL:
            dull.clear()
        dull.add(head)

    def _look(self, start: int, line: int) -> bool:
        """Match the line at `start` with those behind it, or else with the one before it."""
        if self._take(start, start, line):
            return True
        before = _line_start(self._buffer, start - 1) if start else start
        return before < start and self._take(before, start, line - 1)

    def _take(self, start: int, upto: int, line: int) -> bool:
        """Note the messages that begin between `start` and the line at `upto`."""
        source = self._buffer[max(0, start - NEAR) : start].decode("utf-8", "replace")
        near = Window(self._buffer[start : start + BEFORE])
        if not find_messages(near.text, self._extra, source=source):
            return False
        window = Window(self._buffer[start : start + WINDOW])
        taken = False
        for match in find_messages(window.text, self._extra, source=source):
            begin, end = match.span
            where = window.offset(begin)
            if where > max(_line_end(self._buffer, upto) - start, 0) or window.is_source(begin):
                continue
            taken = True
            place = self._report.size + start + where
            if place <= self._ended:
                continue
            self._ended = self._report.size + start + max(window.offset(end) - 1, where)
            self._note(match, line + window.line(begin), place)
        return taken

    def _note(self, match: Match, line: int, offset: int) -> None:
        key: tuple[object, ...] = (match.pattern, *_telling(match.captures))
        if key not in self._variants and self._crowded(match.pattern):
            key = (match.pattern,)
        known = self._variants.get(key)
        if known is None:
            known = self._variants[key] = Found(match, line, offset)
            self._report.found.append(known)
        else:
            known.count += 1
        at = _line_start(self._buffer, offset - self._report.size)
        rank = rank_in(without_colour(_text(self._buffer[at : at + NEAR])))
        if all(sighting.rank != rank for sighting in known.sightings):
            known.sightings.append(Sighting(rank, line, self._frame(at, rank)))

    def _frame(self, at: int, rank: int | None) -> TextFrame | None:
        """The user's line behind the message whose line begins at `at`."""
        raw = self._buffer[max(0, at - AROUND) : at]
        head = raw.rfind(HEAD.encode())
        while head >= 0 and rank_in(_own_line(raw, head)) != rank:
            head = raw.rfind(HEAD.encode(), 0, head)
        lines = [without_colour(line) for line in _text(raw[max(head, 0) :]).split("\n")]
        same = [without_prefix(line) for line in lines[:-1] if rank_in(line) == rank]
        own = without_prefix(_own_line(self._buffer, at))
        warned = _WARNED.match(own)
        if warned is not None:
            return TextFrame(warned["file"], int(warned["line"]), "")
        return innermost_of_users(last_traceback([HEAD, *same])) if head >= 0 else None

    def _note_consequences(self, begin: int, end: int) -> None:
        for text in CONSEQUENCES:
            position = self._buffer.find(text.encode(), begin, end)
            while position >= 0:
                line = _own_line(self._buffer, position)
                if _ERROR.search(line):
                    self._report.consequences.setdefault(rank_in(line), without_prefix(line))
                position = self._buffer.find(text.encode(), position + len(text), end)

    def _crowded(self, pattern: str) -> bool:
        return sum(key[0] == pattern for key in self._variants) >= MOST_VARIANTS


class Window:
    """A piece of the log as text without colours and prefixes, which knows its bytes."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._starts: list[tuple[int, int, int]] = []  # text position, byte offset, line
        parts, position = [], 0
        for text, offset, line in _lines(raw):
            self._starts.append((position, offset, line))
            parts.append(text)
            position += len(text) + 1
        self.text = "\n".join(parts)

    def line(self, position: int) -> int:
        """How many line ends of the log stand before a position of the text."""
        return self._at(position)[2]

    def offset(self, position: int) -> int:
        """The byte at which a position of the text stands: exact where the line is plain."""
        begin, offset, _ = self._at(position)
        ahead = self.text[position : position + 24].split("\n", 1)[0].encode()
        found = self._raw.find(ahead, offset) if ahead else -1
        return found if found >= 0 else offset + len(self.text[begin:position].encode())

    def is_source(self, position: int) -> bool:
        """Whether the line shows the program's text, in a traceback, and not its output."""
        begin = self.text.rfind("\n", 0, position) + 1
        return bool(_SOURCE_LINE.match(self.text[begin:position]))

    def _at(self, position: int) -> tuple[int, int, int]:
        return next(s for s in reversed(self._starts) if s[0] <= position)


def _lines(raw: bytes) -> Iterator[tuple[str, int, int]]:
    """Cleaned lines with their byte offset and number; a carriage return begins one as well."""
    offset = 0
    for number, line in enumerate(raw.split(b"\n")):
        start = offset
        for part in line.split(b"\r"):
            if part or line == b"":
                text = without_colour(part.decode("utf-8", "replace"))
                yield without_prefix(text), start, number
            start += len(part) + 1
        offset += len(line) + 1


def _keys(wordings: Iterable[Wording]) -> tuple[tuple[bytes, bytes], ...]:
    """Of each wording's head the two longest words: a line end cannot part them."""
    pairs = set()
    for wording in wordings:
        words = sorted(" ".join(wording.literals).encode().split(), key=len)
        pairs.add((words[-1], words[-2] if len(words) > 1 else words[-1]))
    return tuple(pairs)


def _line_start(buffer: bytes, position: int) -> int:
    """Where the line of `position` begins; of a very long one a place shortly before."""
    end = max(position, 0)
    newline = buffer.rfind(b"\n", max(0, end - BEFORE), end)
    if newline >= 0:
        return newline + 1
    least = max(0, end - NEAR)
    return max(least, buffer.rfind(b"\r", least, end) + 1)


def _own_line(buffer: bytes, position: int) -> str:
    """The whole line that holds a position, without colours."""
    begin = buffer.rfind(b"\n", max(0, position - NEAR), position) + 1
    return without_colour(_text(buffer[begin : _line_end(buffer, position)][:BEFORE]))


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _line_end(buffer: bytes, position: int) -> int:
    newline = buffer.find(b"\n", position)
    return len(buffer) if newline < 0 else newline


def _telling(captures: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The captures that tell one bug from another: numbers change from step to step."""
    for name, value in sorted(captures.items()):
        if not value.lstrip("-").isdigit() and "\n" not in value:
            yield name, value[:200]
