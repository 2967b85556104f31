"""The report for a terminal, and as plain text: complete without any colour.

Short reports fit under a traceback (`ROOM` lines); what does not fit is behind the hints.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from rich.console import Console
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
_LEAST = 12  #: lines of a rewrite that are shown in any case
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


def draw(text: Text, width: int, color: bool) -> str:
    """Text as it stands (long addresses run on), without trailing blanks where colourless."""
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
    console.print(text, soft_wrap=True)
    drawn = file.getvalue().rstrip("\n")
    return drawn if color else "\n".join(line.rstrip() for line in drawn.split("\n"))


def encodable(text: str, file: Any) -> str:
    """`text`, or its ASCII look-alike where the stream cannot take it (Windows code pages)."""
    encoding = getattr(file, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        text = text.translate(_ASCII)
        return text.encode(encoding, "replace").decode(encoding)
    return text


def framed(lines: Iterable[Text], title: str, width: int) -> Text:
    """Lines between two rules.  No side borders: they break copying and CJK alignment."""
    heading = Text.assemble(
        ("── autograd_explain", "dim"), (f" · {title}" if title else "", "bold")
    )
    heading.append(" " + "─" * (width - heading.cell_len - 1), "dim")
    return Text("\n").join([heading, *lines, Text("─" * width, "dim")])


def panel(view: View, detail: str = "short", width: int = WIDTH) -> Text:
    """The report between two rules."""
    lines = full(view, width) if detail == "full" else short(view, width)
    return framed(lines, view.cause, width)


def short(view: View, width: int) -> list[Text]:
    """Headline, the user's lines, the first rewrite, and as much of the reason as fits."""
    head = [*_headline(view, width), *_spaced(_evidence(view, width))]
    foot = [*_spaced(_footer(view, width))]
    why = [*_spaced(paragraphs(view.why.first_paragraph(), width))] if view.why else []
    spare = ROOM - 2 - len(head) - len(foot)
    remedy = [*_spaced(_remedy(view, width))]
    if len(why) + len(remedy) <= spare:
        return [*head, *why, *remedy, *foot]
    if len(remedy) > spare:
        remedy = [*_spaced(_remedy(view, width, context=False))]
    return [*head, *_capped(remedy, max(spare, _LEAST), view.language), *foot]


def _capped(lines: list[Text], most: int, language: str) -> list[Text]:
    if len(lines) <= most:
        return lines
    rest = word("more_lines", language, count=len(lines) - most + 1)
    return [*lines[: most - 1], Text(f"  {rest}", "dim")]


def full(view: View, width: int) -> list[Text]:
    """All of it."""
    parts = [
        _headline(view, width),
        _message(view, width),
        _evidence(view, width),
        _tensors(view, width),
        _section("cause_heading", paragraphs(view.why, width - 2), view, width),
        *(_rewrite(r, view, width, why=True) for r in view.rewrites),
        _bullets("check", view.check, view, width),
        _bullets("warnings", view.warnings, view, width),
        _see(view, width),
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


def _tensors(view: View, width: int) -> Iterator[Text]:
    lines = (line for tensor in view.tensors for line in wrap(Text(tensor), width - 2))
    yield from _section("tensors", lines, view, width)


def _see(view: View, width: int) -> Iterator[Text]:
    """Addresses on lines of their own, unbroken, so that terminals can open them."""
    lines = (Text(t) for s in view.see for t in (s.get("title", ""), f"  {s.get('url', '')}"))
    yield from _section("see", lines, view, width)


def _bullets(title: str, items: Iterable[Any], view: View, width: int) -> Iterator[Text]:
    lines = (
        line for item in items for line in indented(wrap(one_line(item), width - 4), "• ", "  ")
    )
    yield from _section(title, lines, view, width)


def _remedy(view: View, width: int, context: bool = True) -> Iterator[Text]:
    if not view.rewrites:
        yield from _bullets("check", view.check[:3], view, width)
        return
    yield from _rewrite(view.rewrites[0], view, width, context=context)


def _rewrite(
    rewrite: RewriteView, view: View, width: int, why: bool = False, context: bool = True
) -> Iterator[Text]:
    name = word("rewrite", view.language)
    number = f" {rewrite.number}" if len(view.rewrites) > 1 else ""
    title = Text.assemble((f"{name}{number}", "bold green"), "  ", one_line(rewrite.title, "bold"))
    yield from wrap(title, width)
    yield from indented(wrap(_standing(rewrite), width - 4), "  ", "    ")
    if why:
        yield from indented(paragraphs(rewrite.why, width - 2), "  ")
    yield from indented(diff(rewrite, width - 2, context), "  ")


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
