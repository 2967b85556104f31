"""The user's lines as a compiler prints them: the expression underlined, the label beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.text import Text

from .diff import Hunk, Line
from .prose import indented, one_line
from .rails import as_text
from .rows import Row
from .timeline import Stop
from .wrap import wrap

STYLES = {
    "saved": "bright_blue",
    "guilty": "bold red",
    "changed": "red",
    "needed": "yellow",
    "other": "magenta",
    "path": "dim",
    "step": "default",
}
GLYPHS = {
    "saved": "●",
    "guilty": "◆",
    "changed": "◆",
    "needed": "✗",
    "other": "▸",
    "path": "○",
    "step": "○",
}
WIDEST_NAME = 18
_NARROWEST = 30  #: cells that a label needs to stand beside its line rather than below it
_SIGNS = {"-": "red", "+": "green", " ": "dim"}


@dataclass(frozen=True)
class Gutter:
    """What stands left of the code: where it is, its line number, a bar; nothing where lanes
    stand there and no line is known."""

    name_width: int
    number_width: int
    shown: bool

    @property
    def width(self) -> int:
        return self.name_width + self.number_width + 4 if self.shown else 0

    def line(self, name: str = "", number: int | None = None) -> Text:
        if not self.shown:
            return Text()
        shown = crop_middle(name, self.name_width)
        pad = " " * (self.name_width - cell_len(shown))
        count = "" if number is None else str(number)
        return Text.assemble((f"{shown}{pad} {count:>{self.number_width}} │ ", "dim"))


def listing(rows: Sequence[Row], width: int) -> Iterator[Text]:
    """Every row: the line of code, and under it what happened there."""
    gutter = Gutter(
        min(WIDEST_NAME, max((cell_len(r.where) for r in rows), default=0)),
        max((len(str(r.line or "")) for r in rows), default=0),
        any(r.where or r.rail is None for r in rows),
    )
    before = ""
    for row in rows:
        yield from _row(row, gutter, width, row.where if row.where != before else "")
        before = row.where or before


def _row(row: Row, gutter: Gutter, width: int, name: str) -> Iterator[Text]:
    style = STYLES[row.tone]
    beside, under = _rails(row, style)
    room = max(width - gutter.width - beside.cell_len, 16)
    if not row.where:
        yield from indented(
            wrap(_label(row, style), room), gutter.line() + beside, gutter.line() + under
        )
        return
    source, start, end = window(row.source, row.start, row.end, room)
    code = Text(source)
    if row.tone == "guilty":
        code.stylize("bold")
    code.stylize(style, start, end)
    first = gutter.line(name, row.line) + beside + code
    if row.tone in ("path", "step") and cell_len(source) + cell_len(row.label.plain()) + 2 <= room:
        yield first + Text("  ") + _label(row, style)
        return
    yield first
    lead, mark = cell_len(source[:start]), cell_len(source[start:end])
    line = Text(" " * lead + ("━" if row.tone == "guilty" else "─") * mark, style)
    for text in _labelled(row, line, room, style):
        yield gutter.line() + under + text


def _rails(row: Row, style: str) -> tuple[Text, Text]:
    """What of the graph stands beside a row's code, and beside its label."""
    if row.rail is None:
        return Text(), Text()
    mark = GLYPHS.get(row.tone, "○")
    beside, under = as_text(row.rail, mark)
    text = Text(beside, "dim")
    if row.rail.lane is not None:
        text.stylize(style, 2 * row.rail.lane, 2 * row.rail.lane + 1)
    return text, Text(under, "dim")


def _labelled(row: Row, under: Text, room: int, style: str) -> Iterator[Text]:
    label = _label(row, style)
    beside = room - cell_len(under.plain) - 1
    if beside >= min(cell_len(label.plain), _NARROWEST):
        first = Text.assemble(under, " " if under.plain else "")
        yield from indented(wrap(label, beside), first, Text(" " * cell_len(first.plain)))
    elif (row.start, row.end) == (0, len(row.source)):
        corner = Text("┗━ " if row.tone == "guilty" else "╰─ ", style)
        yield from indented(wrap(label, room - 3), corner, "   ")
    else:
        yield under
        yield from wrap(label, room)
    if row.called_from:
        yield from wrap(one_line(row.called_from, "dim"), room)


def _label(row: Row, style: str) -> Text:
    label = one_line(row.label, style)
    if row.certainty:
        label.append(" ").append(f"[{row.certainty}]", "dim")
    return label


def window(source: str, start: int, end: int, room: int) -> tuple[str, int, int]:
    """A stretch of a long line that fits and still shows its expression's beginning."""
    source = source.replace("\t", " ")
    if cell_len(source) <= room:
        return source, start, end
    cut = 0
    if cell_len(source[:end]) > room - 1:
        while cut < start and cell_len(source[cut:end]) > room - 2:
            cut += 1
    shown = ("…" if cut else "") + source[cut:]
    shift = 1 - cut if cut else 0
    shown = crop(shown, room)
    return shown, max(start + shift, 0), max(min(end + shift, len(shown)), start + shift)


def crop(text: str, room: int) -> str:
    """At most `room` cells, `…` for the rest."""
    if cell_len(text) <= room:
        return text
    while text and cell_len(text) > room - 1:
        text = text[:-1]
    return text + "…"


def crop_middle(name: str, room: int) -> str:
    """A file's name shortened so that its ending can still be read."""
    if cell_len(name) <= room:
        return name
    tail = name[-(room // 2) :]
    return crop(name, room - cell_len(tail)) + tail


# -- the version timeline -----------------------------------------------------------------


def timeline(stops: Sequence[Stop], title: str, width: int) -> list[Text]:
    """The stops on a line, their captions beneath."""
    room = width - cell_len(title) - 2
    rows = [[f"{s.caption} {s.where}".strip() for s in stops]]
    if sum(cell_len(caption) + 2 for caption in rows[0]) > room:
        rows = [[s.caption for s in stops], [crop_middle(s.where, 18) for s in stops]]
    heads = [f"{GLYPHS[s.tone]} {s.version}" for s in stops]
    sizes = [
        max(cell_len(head) + 6, *(cell_len(row[i]) + 2 for row in rows))
        for i, head in enumerate(heads)
    ]
    if sum(sizes) - 2 > room:
        return []
    lines = [Text.assemble((title, "dim"), "  ", _axis(stops, heads, sizes))]
    for row in rows:
        text = Text(" " * (cell_len(title) + 2))
        for stop, caption, size in zip(stops, row, sizes, strict=True):
            text.append(caption + " " * (size - cell_len(caption)), STYLES[stop.tone])
        text.rstrip()
        lines.append(text)
    return lines


def _axis(stops: Sequence[Stop], heads: Sequence[str], sizes: Sequence[int]) -> Text:
    text = Text()
    for number, (stop, head, size) in enumerate(zip(stops, heads, sizes, strict=True)):
        text.append(head, f"bold {STYLES[stop.tone]}")
        if number < len(stops) - 1:
            line = "━" if stop.tone == "saved" else "┅"
            text.append(f" {line * (size - cell_len(head) - 2)} ", STYLES[stop.tone])
    return text


# -- a rewrite ----------------------------------------------------------------------------


def diff(hunks: Sequence[Hunk], width: int | None, context: bool = True) -> Iterator[Text]:
    """The changed lines with their numbers, under the name of their cell or file; without a width
    each as long as it is."""
    numbers = [line.number for hunk in hunks for line in hunk.lines]
    size = len(str(max(numbers, default=0)))
    before = ""
    for hunk in hunks:
        if hunk.where != before:
            yield Text(hunk.where if width is None else crop(hunk.where, width), "dim")
        elif context:
            yield Text(f"{'⋮':>{size}}", "dim")
        before = hunk.where
        shown = (line for line in hunk.lines if context or line.sign != " ")
        yield from (_diff_line(line, size, width) for line in shown)


def _diff_line(line: Line, size: int, width: int | None) -> Text:
    text = line.text
    if width is not None:
        text, _, _ = window(text, line.start, line.end, max(width - size - 5, 8))
    return Text.assemble(
        (f"{line.number:>{size}} │ ", "dim"),
        (f"{line.sign} {text}".rstrip(), _SIGNS[line.sign]),
    )
