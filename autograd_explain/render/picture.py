"""The version timeline as an inline SVG: shapes as well as colours tell the stops apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from rich.cells import cell_len

from .listing import crop_middle
from .timeline import Stop

_CELL = 7.2  #: pixels of one terminal cell at the caption's size
_TOP, _HEIGHT = 14, 46
_SHAPES = {
    "saved": '<circle cx="{x}" cy="{y}" r="5"/>',
    "guilty": '<path d="M{x} {y}m-7 0l7 -7l7 7l-7 7z"/>',
    "needed": '<path class="cross" d="M{x} {y}m-5 -5l10 10m0 -10l-10 10"/>',
}


def svg(stops: Sequence[Stop], title: str, version: str) -> str:
    """A line from stop to stop, each with its version above and its place below."""
    captions = [f"{s.caption} {crop_middle(s.where, 24)}".strip() for s in stops]
    steps = [max(150.0, cell_len(c) * _CELL + 30) for c in captions]
    left = 10.0
    xs = [left + sum(steps[:i]) for i in range(len(stops))]
    width = round(left + sum(steps))
    parts = [
        f'<svg class="axg-line" role="img" aria-label="{escape(title)}" width="{width}" '
        f'height="{_HEIGHT}" viewBox="0 0 {width} {_HEIGHT}">',
        *_segments(stops, xs, version),
        *(_stop(s, c, x, version) for s, c, x in zip(stops, captions, xs, strict=True)),
        "</svg>",
    ]
    return "".join(parts)


def _segments(stops: Sequence[Stop], xs: Sequence[float], version: str) -> Iterator[str]:
    """The stretch after a stop is drawn in the stop's tone: saved, then overwritten."""
    for stop, left, right in zip(stops, xs, xs[1:], strict=False):
        start = left + 18 + cell_len(f"{version} {stop.version}") * _CELL
        yield (
            f'<line class="axg-{stop.tone}" x1="{start:.0f}" y1="{_TOP}" '
            f'x2="{right - 12:.0f}" y2="{_TOP}"/>'
        )


def _stop(stop: Stop, caption: str, x: float, version: str) -> str:
    shape = _SHAPES[stop.tone].format(x=f"{x:.0f}", y=_TOP)
    return (
        f'<g class="axg-{stop.tone}">{shape}'
        f'<text class="axg-v" x="{x + 12:.0f}" y="{_TOP + 4}">{escape(version)} '
        f"{escape(stop.version)}</text> "
        f'<text x="{x - 6:.0f}" y="{_TOP + 24}">{escape(caption)}</text></g> '
    )
