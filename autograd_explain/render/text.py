"""The report for a terminal, and as plain text: complete without any colour.

Short reports fit under a traceback (`ROOM` lines); what does not fit is behind the hints.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from .labels import word
from .listing import diff, listing, timeline
from .prose import indented, one_line, paragraphs
from .view import RewriteView, View
from .wrap import wrap

if TYPE_CHECKING:
    from ..model import Outcome

ROOM = 25  #: lines of a short report at 80 columns or more
WIDTH = 88  #: of plain text, whose reader's width is unknown
WIDEST = 110
_STANDING = {
    "verified": ("✓", "green"),
    "runs": ("○", "green"),
    "differs": ("≠", "yellow"),
    "fails": ("✗", "red"),
    "not_tried": ("·", "dim"),
}
_ASCII = str.maketrans("─━┅│●◆✗✓○≠•·→…⋮╭╮╰╯", "-=.||*#xvo!*->.:++++"[:19])


def plain(view: View, detail: str = "short", width: int = WIDTH) -> str:
    """The report without colour, for `text/plain`."""
    return draw(panel(view, detail, width), width, color=False)


def for_terminal(view: View, detail: str = "short", file: Any = None) -> str:
    """The report as it should be written to `file` (stdout): colour and width as it has them."""
    file = file or sys.stdout
    console = Console(file=file)
    width = max(40, min(console.width, WIDEST))
    return encodable(draw(panel(view, detail, width), width, console.is_terminal), file)


def draw(renderable: Any, width: int, color: bool) -> str:
    """Any rich renderable as a string, trailing blanks removed where there is no colour."""
    file = io.StringIO()
    console = Console(
        file=file,
        width=width,
        force_terminal=color,
        force_jupyter=False,
        color_system="standard" if color else None,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
    )
    console.print(renderable)
    text = file.getvalue().rstrip("\n")
    return text if color else "\n".join(line.rstrip() for line in text.splitlines())


def encodable(text: str, file: Any) -> str:
    """`text`, or its ASCII look-alike where the stream cannot take it (Windows code pages)."""
    encoding = getattr(file, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        text = text.translate(_ASCII)
        return text.encode(encoding, "replace").decode(encoding)
    return text


def framed(lines: Iterable[Text], title: str, width: int) -> Panel:
    """Lines between two rules.  No side borders: they break copying and CJK alignment."""
    content = Text("\n", no_wrap=True, overflow="ignore").join(lines)
    heading = Text.assemble("autograd_explain", (f" · {title}" if title else "", "bold"))
    return Panel(
        content, box.HORIZONTALS, title=heading, title_align="left", border_style="dim", width=width
    )


def panel(view: View, detail: str = "short", width: int = WIDTH) -> Panel:
    """The report between two rules."""
    inner = width - 4
    lines = full(view, inner) if detail == "full" else short(view, inner)
    return framed(lines, view.cause, width)


def short(view: View, width: int) -> list[Text]:
    """Headline, the user's lines, the first rewrite, and as much of the reason as fits."""
    head = [*_headline(view, width), Text(), *_evidence(view, width)]
    tail = [*_spaced(_first_rewrite(view, width)), *_spaced(_footer(view, width))]
    why = paragraphs(view.why.first_paragraph(), width) if view.why else []
    spare = ROOM - 2 - len(head) - len(tail) - 1
    return [*head, *_spaced(why if len(why) <= spare else ()), *tail]


def full(view: View, width: int) -> list[Text]:
    """All of it."""
    parts = [
        _headline(view, width),
        _message(view, width),
        _evidence(view, width),
        _section("tensors", map(Text, view.tensors), view, width),
        _section("cause_heading", paragraphs(view.why, width - 2), view, width),
        *(_rewrite(r, view, width, why=True) for r in view.rewrites),
        _bullets("check", view.check, view, width),
        _bullets("warnings", view.warnings, view, width),
        _section("see", (Text(f"{s['title']}: {s['url']}") for s in view.see), view, width),
        _footer(view, width),
    ]
    lines = [line for part in parts for line in _spaced(part)]
    return lines[1:]


def _spaced(lines: Iterable[Text]) -> Iterator[Text]:
    """An empty line before, if there is anything."""
    for number, line in enumerate(lines):
        if not number:
            yield Text()
        yield line


def _headline(view: View, width: int) -> list[Text]:
    return wrap(one_line(view.headline, "bold"), width)


def _message(view: View, width: int) -> Iterator[Text]:
    if view.message:
        yield Text(word("message", view.language), "dim")
        for line in view.message.splitlines():
            yield from indented(wrap(Text(line), width - 2), "  ")


def _evidence(view: View, width: int) -> Iterator[Text]:
    """The listing and the timeline."""
    yield from listing(view.rows, width)
    if view.stops:
        yield from _spaced(timeline(view.stops, word("version", view.language), width))


def _section(title: str, lines: Iterable[Text], view: View, width: int) -> Iterator[Text]:
    for number, line in enumerate(lines):
        if not number:
            yield Text(word(title, view.language), "bold")
        yield Text("  ") + line


def _bullets(title: str, items: Iterable[Any], view: View, width: int) -> Iterator[Text]:
    lines = (
        line for item in items for line in indented(wrap(one_line(item), width - 4), "• ", "  ")
    )
    yield from _section(title, lines, view, width)


def _first_rewrite(view: View, width: int) -> Iterator[Text]:
    if not view.rewrites:
        yield from _bullets("check", view.check[:3], view, width)
        return
    lines = list(_rewrite(view.rewrites[0], view, width))
    most = 12
    yield from lines[:most]
    if len(lines) > most:
        yield Text("  " + word("more_lines", view.language, count=len(lines) - most), "dim")


def _rewrite(rewrite: RewriteView, view: View, width: int, why: bool = False) -> Iterator[Text]:
    name = word("rewrite", view.language)
    number = f" {rewrite.number}" if len(view.rewrites) > 1 else ""
    title = Text.assemble((f"{name}{number}", "bold green"), "  ", one_line(rewrite.title, "bold"))
    yield from wrap(title, width)
    yield from indented(wrap(_standing(rewrite), width - 4), "  ", "    ")
    if why:
        yield from indented(paragraphs(rewrite.why, width - 2), "  ")
    yield from indented(diff(rewrite, width - 2), "  ")


def _standing(rewrite: RewriteView) -> Text:
    """`✓ verified: runs; w.grad equals the reference`."""
    mark, style = _STANDING[_value(rewrite.outcome)]
    text = Text.assemble((f"{mark} {rewrite.outcome_word}", style))
    if rewrite.reason:
        text.append(": ", style).append_text(one_line(rewrite.reason, style))
    if rewrite.caution:
        text.append(" · ", "dim").append_text(one_line(rewrite.caution, "yellow"))
    return text


def _value(outcome: Outcome) -> str:
    return outcome.value


def _footer(view: View, width: int) -> Iterator[Text]:
    for note in view.notes:
        yield from wrap(one_line(note, "dim"), width)
    hints = Text(" · ", "dim").join(one_line(hint, "dim") for hint in view.hints)
    if hints.plain:
        yield from wrap(hints, width)
