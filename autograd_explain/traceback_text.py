"""Tracebacks that are text: in logs, and of errors that were raised in another process."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from .model import Place
from .program import is_library

#: Colours, cursor movements, links and titles (ECMA-48 control sequences and OSC strings).
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
HEAD = "Traceback (most recent call last)"
_FRAME = re.compile(r'\s*File "(?P<file>.+)", line (?P<line>\d+)(?:, in (?P<function>.+))?\s*\Z')
#: Of machines other than this one: Python's own library, and what has no file.
_LIBRARY = re.compile(r"[\\/]lib[\\/]python\d|[\\/]Lib[\\/]|\A<")
_CLASS = re.compile(r"[A-Za-z_][\w.]*\Z")
#: IPython: `File ~/train.py:5, in f(x)`, and `/home/me/train.py in f(x)` up to its version 8.
_IPYTHON = re.compile(
    r"(?:File )?(?P<file>(?:[A-Za-z]:|~)?[^\s:*?<>|][^:*?<>|]*?)(?::(?P<line>\d+))?"
    r"(?:,? in (?P<function>[^(\n]+).*)?\s*\Z"
)
_ARROW = re.compile(r"-+> (?P<line>\d+) ?(?P<source>.*)")
_MARKS = re.compile(r"(\s*)([~^]+)\s*\Z")


def without_colour(text: str) -> str:
    """The text without terminal control sequences."""
    return _ANSI.sub("", text) if "\x1b" in text else text


@dataclass(frozen=True)
class TextFrame:
    """A line of a printed traceback; `source` is what it shows of the program, "" without.

    `columns` is the part of `source` that Python (3.11 and later) marks below it.
    """

    file: str
    line: int
    function: str
    source: str = ""
    columns: tuple[int, int] | None = None

    @property
    def is_users(self) -> bool:
        """Whether it is the user's own code, as far as its path tells."""
        return not (_LIBRARY.search(self.file) or is_library(self.file))

    @property
    def place(self) -> dict[str, object]:
        """As the report has its places."""
        function = None if self.function in ("", "<module>") else self.function
        return Place(None, self.file, self.line, self.source, function).to_dict()


def frames_in(lines: Iterable[str]) -> tuple[TextFrame, ...]:
    """The frames that the lines show, outermost first."""
    found: list[TextFrame] = []
    indent = -1  # of the source just shown; -1 where the frame has none yet, -2 where it is whole
    for line in lines:
        match, marks = _FRAME.match(line), _MARKS.match(line)
        if match is not None:
            found.append(TextFrame(match["file"], int(match["line"]), match["function"] or ""))
            indent = -1
        elif marks is not None and indent >= 0:
            start = len(marks[1]) - indent
            found[-1] = replace(found[-1], columns=(start, start + len(marks[2])))
            indent = -2
        elif found and indent == -1 and line[:1].isspace() and line.strip():
            found[-1] = replace(found[-1], source=line.strip())
            indent = len(line) - len(line.lstrip())
        else:
            indent = -2
    return tuple(found)


def ipython_frames_in(lines: Iterable[str]) -> tuple[TextFrame, ...]:
    """The frames of files that a traceback of IPython's shows, outermost first; without colours."""
    found: list[TextFrame] = []
    head: re.Match[str] | None = None
    for line in lines:
        arrow = _ARROW.match(line)
        if arrow is not None and head is not None:
            file, function = os.path.expanduser(head["file"]), (head["function"] or "").strip()
            found.append(TextFrame(file, int(arrow["line"]), function, arrow["source"].strip()))
            head = None
        elif arrow is None and line[:1].strip():
            match = _IPYTHON.match(line)
            named = match is not None and (match["line"] or match["function"])
            head = match if named else None
    return tuple(found)


def last_traceback(lines: Sequence[str]) -> tuple[TextFrame, ...]:
    """The frames of the traceback that ends with the last of the lines; () where none does."""
    for at in range(len(lines) - 1, -1, -1):
        if HEAD in lines[at]:
            return frames_in(lines[at + 1 :])
    return ()


def innermost_of_users(frames: Sequence[TextFrame]) -> TextFrame | None:
    """The innermost frame of the user's own code."""
    return next((frame for frame in reversed(frames) if frame.is_users), None)


def raised_in(text: str) -> tuple[tuple[TextFrame, ...], str, str] | None:
    """The frames, the exception's class and its message, of the last traceback in a text."""
    lines = text[text.rfind(HEAD) :].strip().strip('"').splitlines() if HEAD in text else []
    at = next((n for n, line in enumerate(lines) if n and not line[:1].isspace()), len(lines))
    kind, colon, message = "\n".join(lines[at:]).strip().partition(": ")
    if not colon or not _CLASS.match(kind):
        return None
    return frames_in(lines[1:at]), kind, message
