"""Cells are not quite Python: magics, `!cmd` and `name?` are hidden while LibCST looks at them.

Every hidden piece becomes a string literal or a comment of the same number of lines, so that
line numbers stay those of the text as typed, and is put back afterwards to the letter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...isolation.silence import silenced
from ...model import lines_of

_MARK = "\ue000"  # private use: no keyboard types it
#: Cell magics whose body is no Python of this kernel.
_OTHER_LANGUAGES = frozenset(
    {
        *("bash", "sh", "script", "cmd", "perl", "ruby", "pypy", "python", "python2", "python3"),
        *("html", "javascript", "js", "latex", "markdown", "svg", "writefile", "file"),
    }
)


@dataclass(frozen=True)
class Masked:
    """A cell's text with its magics hidden: `originals` pairs each mask with what it hides."""

    text: str
    originals: tuple[tuple[str, str], ...] = ()

    def without(self, runs: Sequence[tuple[int, int]]) -> Masked | None:
        """The same with runs of whole lines hidden too, each behind one literal."""
        if not runs:
            return self
        if f"{_MARK}aside" in self.text:
            return None
        lines, originals = lines_of(self.text, keepends=True), list[tuple[str, str]]()
        for first, last in reversed(runs):
            piece, ending = _split_ending("".join(lines[first - 1 : last]))
            token = f'"""{_MARK}aside{first}{_MARK}' + "\n" * (last - first) + '"""'
            originals.append((token, piece))
            lines[first - 1 : last] = [token + ending]
        return Masked("".join(lines), (*originals, *self.originals))

    def unmask(self, code: str) -> str | None:
        """`code` with every magic back in place; None where one was lost or doubled."""
        for mask, original in self.originals:
            if code.count(mask) != 1:
                return None
            code = code.replace(mask, original)
        return code


def is_masked(literal: str) -> bool:
    """Whether a string literal of the masked text stands for a magic."""
    return _MARK in literal


def mask(text: str) -> Masked | None:
    """The text with cell magics, line magics, shell lines and help lines hidden."""
    if _MARK in text:
        return None
    lines, originals = lines_of(text, keepends=True), list[tuple[str, str]]()
    for number in _cell_magic_lines(lines):
        content, ending = _split_ending(lines[number])
        if content[2:].split(" ")[0].lower() in _OTHER_LANGUAGES:
            return None
        token = f"#{_MARK}{len(originals)}{_MARK}"
        originals.append((token, content))
        lines[number] = token + ending
    for _ in range(len(lines)):
        found = _first_special(lines)
        if found is None:
            return Masked("".join(lines), tuple(originals))
        start, column, end = found
        piece, ending = _split_ending("".join(lines[start : end + 1])[column:])
        token = f'"""{_MARK}{len(originals)}{_MARK}' + "\n" * (end - start) + '"""'
        originals.append((token, piece))
        replaced = lines_of(lines[start][:column] + token + ending, keepends=True)
        lines[start : end + 1] = replaced
    return Masked("".join(lines), tuple(originals)) if _first_special(lines) is None else None


def _cell_magic_lines(lines: list[str]) -> list[int]:
    """The `%%magic` lines at the head of a cell (`%%time` may be followed by `%%capture`)."""
    found = []
    for number, line in enumerate(lines):
        if line.startswith("%%"):
            found.append(number)
        elif line.strip():
            break
    return found


def _split_ending(line: str) -> tuple[str, str]:
    content = line.rstrip("\r\n")
    return content, line[len(content) :]


def _first_special(lines: list[str]) -> tuple[int, int, int] | None:
    """First line, column and last line (from 0) of the first piece that IPython would translate.

    IPython's own finders decide, one piece at a time: behind a piece its tokenizer may go wrong.
    """
    from IPython.core import inputtransformer2 as ipython

    with silenced():
        tokens: Any = ipython.make_tokens_by_line(lines)
    finders: Any = (
        ipython.MagicAssign,
        ipython.SystemAssign,
        ipython.EscapedCommand,
        ipython.HelpEnd,
    )
    found: list[Any] = [f for finder in finders if (f := finder.find(tokens)) is not None]
    if not found:
        return None
    first = min(found, key=lambda f: f.sortby())
    last = getattr(first, "q_line", None)
    if last is None:
        last = ipython.find_end_of_continued_line(lines, first.start_line)
    return first.start_line, first.start_col, last
