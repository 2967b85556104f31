"""The report for a terminal, and as plain text: complete without any colour.

Short reports fit under a traceback (`ROOM` lines); what does not fit is behind the hints.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from .labels import source, word
from .listing import diff, listing, timeline
from .prose import indented, one_line, paragraphs
from .texts import Passage
from .view import RewriteView, View
from .visible import visible
from .wrap import wrap

if TYPE_CHECKING:
    from ..model import Outcome
    from .look_content import LookContent

ROOM = 25  #: lines of a short report at 80 columns or more
_NARROWEST, _WIDEST = 40, 110
_LEAST = 12  #: lines of a rewrite that are shown in any case
_STANDING = {
    "verified": ("✓", "green"),
    "runs": ("○", "green"),
    "differs": ("≠", "yellow"),
    "fails": ("✗", "red"),
    "not_tried": ("·", "dim"),
}
_RULE = re.compile("─{3,}|━+|┅+")
_ASCII = str.maketrans(
    {
        "─": "-", "━": "=", "┅": "-", "│": "|", "●": "*", "◆": "#", "✗": "x", "✓": "v", "○": "o",
        "≠": "!=", "•": "*", "·": "-", "→": "->", "…": "...", "⋮": ":", "▸": ">",
        "╰": "`", "┗": "`", "␛": "^", "–": "-", "╯": "'", "├": "|", "┤": "|", "┼": "+",
    }
)  # fmt: skip


def for_stream(make: Callable[[int], Text], file: Any) -> str:
    """Text as it should be written to `file`: colour, width and characters as that has them."""
    console = Console(file=file, force_jupyter=False)
    width = max(_NARROWEST, min(console.width, _WIDEST))
    return encodable(draw(make(width), console.is_terminal and not console.no_color), file)


def write(make: Callable[[int], Text], file: Any) -> None:
    print(for_stream(make, file), file=file)


def draw(text: Text, color: bool) -> str:
    """Text as it stands (long addresses run on), without trailing blanks where colourless."""
    text = text.copy()
    text.plain = visible(text.plain)
    file = io.StringIO()
    console = Console(
        file=file,
        width=1000,
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


def for_a_file(text: str) -> str:
    """A framed text as a notebook's file holds it, where each mark of a rule takes three bytes."""
    heading, *lines = text.rstrip("─\n").split("\n")
    return "\n".join([heading.rstrip("─ "), *(_RULE.sub(_plain_rule, line) for line in lines)])


def _plain_rule(found: re.Match[str]) -> str:
    return found[0].translate(_ASCII)


def looked(shown: LookContent, width: int) -> Text:
    """What a magic that looks at living objects shows, between two rules."""
    parts: list[list[Text]] = []
    if shown.table:
        parts.append(
            _table(shown.table, width)
            or [line for text in shown.lines for line in wrap(Text(text), width)]
        )
    for picture in shown.pictures:
        heading = wrap(one_line(picture.title, "bold"), width)
        notes = (line for note in picture.notes for line in wrap(one_line(note, "dim"), width))
        parts.append([*heading, *spaced(listing(picture.rows, width)), *spaced(notes)])
    lines = [line for part in parts for line in spaced(part)]
    return framed(lines[1:], shown.command, width)


def _table(rows: Sequence[Sequence[str]], width: int) -> list[Text]:
    """Columns beside each other, [] where there is no room for them."""
    sizes = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    if sum(sizes) + 2 * len(sizes) > width:
        return []
    lines = [
        "  ".join(cell + " " * (s - cell_len(cell)) for cell, s in zip(row, sizes, strict=True))
        for row in rows
    ]
    return [Text(line.rstrip(), "dim" if not n else "") for n, line in enumerate(lines)]


def repeated(parts: Sequence[Passage], width: int) -> Text:
    """A report that was shown before, in a line."""
    headline, again, hint = (one_line(part) for part in parts)
    headline.stylize("bold")
    told = Text.assemble(("autograd_explain · ", "dim"), headline, " ", again, " · ", hint)
    return Text("\n").join(wrap(told, width))


def report(view: View, detail: str, width: int, whole: bool = False) -> Text:
    """The report between two rules; with `whole` every line of a diff as it is in the file."""
    lines = full(view, width, whole) if detail == "full" else short(view, width, whole)
    kind = word(f"kind_{view.kind.value}", view.language)
    return framed(lines, f"{view.cause} · {kind}", width)


def short(view: View, width: int, whole: bool = False) -> list[Text]:
    """Headline, the user's lines, the first rewrite, and as much of the reason as fits."""
    head = [*_headline(view, width), *spaced(_evidence(view, width))]
    foot = [*spaced(_footer(view, width))]
    why = [*spaced(paragraphs(view.why.first_paragraph(), width))] if view.why else []
    spare = ROOM - 2 - len(head) - len(foot)
    remedy = [*spaced(_remedy(view, width, whole=whole))]
    if len(why) + len(remedy) <= spare:
        return [*head, *why, *remedy, *foot]
    if not view.rewrites and why and len(why) <= spare:
        # The reason of this failure tells more than what to look at in general.
        rest = spare - len(why)
        return [
            *head,
            *why,
            *(_capped(remedy, rest, view.language) if rest >= _LEAST else []),
            *foot,
        ]
    if len(remedy) > spare:
        remedy = [*spaced(_remedy(view, width, context=False, whole=whole))]
    return [*head, *_capped(remedy, max(spare, _LEAST), view.language), *foot]


def _capped(lines: list[Text], most: int, language: str) -> list[Text]:
    if len(lines) <= most:
        return lines
    rest = word("more_lines", language, count=len(lines) - most + 1)
    return [*lines[: most - 1], Text(f"  {rest}", "dim")]


def full(view: View, width: int, whole: bool = False) -> list[Text]:
    """All of it."""
    parts = [
        _headline(view, width),
        _message(view, width),
        _evidence(view, width),
        _tensors(view, width),
        section(word("cause_heading", view.language), paragraphs(view.why, width - 2)),
        *(_rewrite(r, view, width, why=True, whole=whole) for r in view.rewrites),
        bullets("check", view.check, view.language, width),
        bullets("warnings", view.warnings, view.language, width),
        see_also(view.see, view.language),
        _footer(view, width),
    ]
    lines = [line for part in parts for line in spaced(part)]
    return lines[1:]


def spaced(lines: Iterable[Text]) -> Iterator[Text]:
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
        yield from spaced(timeline(view.stops, word("version", view.language), width))


def section(title: str, lines: Iterable[Text]) -> Iterator[Text]:
    """Lines under a heading; nothing where there are none."""
    for number, line in enumerate(lines):
        if not number:
            yield Text(title, "bold")
        yield Text("  ") + line if line.plain else line


def _tensors(view: View, width: int) -> Iterator[Text]:
    lines = (line for tensor in view.tensors for line in wrap(Text(tensor), width - 2))
    yield from section(word("tensors", view.language), lines)


def see_also(links: Sequence[Mapping[str, str]], language: str) -> Iterator[Text]:
    """Addresses on lines of their own, unbroken, so that terminals can open them."""
    lines = (Text(t) for s in links for t in (s.get("title", ""), f"  {s.get('url', '')}"))
    yield from section(word("see", language), lines)


def bullets(title: str, items: Iterable[Passage], language: str, width: int) -> Iterator[Text]:
    lines = (
        line for item in items for line in indented(wrap(one_line(item), width - 4), "• ", "  ")
    )
    yield from section(word(title, language), lines)


def _remedy(view: View, width: int, context: bool = True, whole: bool = False) -> Iterator[Text]:
    if not view.rewrites:
        yield from bullets("check", view.check[:3], view.language, width)
        return
    yield from _rewrite(view.rewrites[0], view, width, context=context, whole=whole)


def _rewrite(
    rewrite: RewriteView,
    view: View,
    width: int,
    why: bool = False,
    context: bool = True,
    whole: bool = False,
) -> Iterator[Text]:
    title = Text.assemble((rewrite.heading, "bold green"), "  ", one_line(rewrite.title, "bold"))
    yield from wrap(title, width)
    yield from indented(wrap(_standing(rewrite, view.language), width - 4), "  ", "    ")
    if why:
        yield from indented(paragraphs(rewrite.why, width - 2), "  ")
    yield from indented(diff(rewrite.hunks, None if whole else width - 2, context), "  ")


def _standing(rewrite: RewriteView, language: str) -> Text:
    """`✓ verified: runs; w.grad equals the reference`."""
    mark, style = _STANDING[_value(rewrite.outcome)]
    text = Text.assemble((f"{mark} {rewrite.outcome_word}", style))
    if rewrite.reason:
        text.append(source("colon", language), style).append_text(one_line(rewrite.reason, style))
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
