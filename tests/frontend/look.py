"""What can be seen of a report in a browser: text, marks, contrast."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from playwright.sync_api import Locator

#: Of an element with text: its colour and those of the backgrounds behind it, outermost last.
_SEEN = """root => {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT), found = [];
  while (walker.nextNode()) {
    const text = walker.currentNode.textContent.trim(), element = walker.currentNode.parentElement;
    if (!text || element.closest('style')) continue;
    if (!element.checkVisibility({contentVisibilityAuto: true})) continue;
    const style = getComputedStyle(element), behind = [];
    for (let e = element; e; e = e.parentElement) behind.push(getComputedStyle(e).backgroundColor);
    const svg = element.closest('svg');
    const bold = +style.fontWeight >= 700;
    found.push([text, svg ? style.fill : style.color, behind, parseFloat(style.fontSize), bold]);
  }
  return found;
}"""

Colour = tuple[float, float, float, float]


@dataclass(frozen=True)
class Seen:
    """A piece of text with the contrast of its colour (WCAG 2, 1 to 21)."""

    text: str
    contrast: float


def seen(root: Locator) -> list[Seen]:
    """Every visible text of a report."""
    return [_seen(*found) for found in root.evaluate(_SEEN)]


def _seen(text: str, colour: str, behind: list[str], *_: Any) -> Seen:
    paper: Colour = (255, 255, 255, 1)
    for layer in reversed(behind):
        paper = _over(_parsed(layer), paper)
    return Seen(text, _contrast(_over(_parsed(colour), paper), paper))


def _parsed(colour: str) -> Colour:
    """`rgb(1, 2, 3)`, `rgba(1, 2, 3, 0.5)`, or `color(srgb 0.1 0.2 0.3 / 0.5)` of color-mix."""
    mixed = colour.startswith("color(srgb ")
    assert mixed or colour.startswith("rgb"), colour
    parts = [float(part) for part in re.findall(r"[\d.]+(?:e-?\d+)?", colour)]
    red, green, blue, *alpha = parts
    scale = 255 if mixed else 1
    return (red * scale, green * scale, blue * scale, alpha[0] if alpha else 1.0)


def _over(top: Colour, below: Colour) -> Colour:
    alpha = top[3]
    mixed = [alpha * t + (1 - alpha) * b for t, b in zip(top[:3], below[:3], strict=True)]
    return (mixed[0], mixed[1], mixed[2], 1.0)


def _luminance(colour: Colour) -> float:
    red, green, blue = (
        c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4
        for c in (part / 255 for part in colour[:3])
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(first: Colour, second: Colour) -> float:
    high, low = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)
