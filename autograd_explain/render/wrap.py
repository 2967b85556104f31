"""Breaking lines that hold Chinese or Japanese: rich breaks at spaces only (rich issue 2494)."""

from __future__ import annotations

from collections.abc import Container, Iterator

from rich.cells import cell_len
from rich.text import Text

from .fill import is_cjk

CODE = "bold cyan"  #: the style of inline code
_NOT_FIRST = frozenset(
    ",.;:!?)]}、。，．・：；！？）」』】〉》〕］｝’”…‥ー々ゝゞぁぃぅぇぉっゃゅょゎァィゥェォッャュョヮヵヶ"
)
_NOT_LAST = frozenset("([{（「『【〈《〔［｛‘“")


def wrap(text: Text, width: int) -> list[Text]:
    """Lines of at most `width` cells; no closing mark starts a line, no opening one ends it."""
    lines = []
    width = max(width, 2)
    for paragraph in text.split("\n", allow_blank=True):
        cuts = list(_cuts(paragraph.plain, width, _kept_whole(paragraph, width)))
        for line in paragraph.divide(cuts):
            line.rstrip()
            lines.append(line)
    return lines


def _kept_whole(text: Text, width: int) -> set[int]:
    """Offsets within inline code, tags and hints that are short enough to stay on one line."""
    return {
        offset
        for span in text.spans
        if str(span.style).endswith((CODE, "dim"))
        and cell_len(text.plain[span.start : span.end]) <= width
        for offset in range(span.start + 1, span.end)
    }


def _cuts(text: str, width: int, glued: Container[int]) -> Iterator[int]:
    """Offsets at which a new line starts."""
    start = fit = used = 0
    for i, char in enumerate(text):
        size = cell_len(char)
        while used + size > width and used and char != " ":
            cut = fit if fit > start else i
            yield cut
            used, start = cell_len(text[cut:i]), cut
        used += size
        if i + 1 not in glued and _may_break(char, text[i + 1 : i + 2]):
            fit = i + 1


def _may_break(char: str, following: str) -> bool:
    if following in _NOT_FIRST or char in _NOT_LAST or following == " " or not following:
        return False
    return char == " " or is_cjk(char) or is_cjk(following)
