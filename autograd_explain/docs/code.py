"""Highlighted programs.  Pygments comes with rich."""

from __future__ import annotations

from functools import cache
from typing import Any

from pygments import highlight  # type: ignore[import-untyped, unused-ignore]
from pygments.formatters import HtmlFormatter  # type: ignore[import-untyped, unused-ignore]
from pygments.lexers import PythonLexer  # type: ignore[import-untyped, unused-ignore]


def highlighted(code: str) -> str:
    """A program as HTML; everything in it is escaped."""
    return str(highlight(code, PythonLexer(), _formatter("default"))).strip()


@cache
def style() -> str:
    """The colours, for light and for dark screens."""
    light = _formatter("default").get_style_defs(".highlight")
    dark = _formatter("github-dark").get_style_defs(".highlight")
    return f"{light}\n@media (prefers-color-scheme:dark){{\n{dark}\n}}"


@cache
def _formatter(name: str) -> Any:
    return HtmlFormatter(style=name, nobackground=True)
