"""What is common to everything the user sees: text, colour, HTML, the mimebundle."""

from __future__ import annotations

import re
import sys
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.text import Text

_PRE = re.compile("(<pre.*?</pre>)", re.DOTALL)
_BETWEEN = re.compile(r"\n+(?=</?(?:div|p|pre|ul|details|section|style)\b)")
WIDTH = 88  #: of plain text, whose reader's width is unknown


class Shown(ABC):
    """Something to show.  Subclasses say how it is drawn; language and data are theirs."""

    @abstractmethod
    def to_html(self) -> str:
        """HTML without script, everything from the user's program escaped."""

    @abstractmethod
    def to_markdown(self) -> str:
        """Markdown, for an issue, a chat or the docs."""

    @abstractmethod
    def _draw(self, width: int) -> Text: ...

    def to_text(self, width: int = WIDTH) -> str:
        """Plain text without colour."""
        from .text import draw

        return draw(self._draw(width), color=False)

    def print(self, file: Any = None) -> None:
        """Write it to a stream (standard output), in colour on a terminal."""
        from .text import write

        write(self._draw, sys.stdout if file is None else file)

    def __str__(self) -> str:
        """What `print` can write to standard output; the whole text is `to_text()`."""
        from .text import encodable

        return encodable(self.to_text(), sys.stdout)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """What notebooks and terminals show; `text/plain` is complete by itself."""
        from .text import for_a_file, for_stream

        terminal = bool(getattr(sys.stdout, "isatty", bool)())
        text = for_stream(self._draw, sys.stdout) if terminal else for_a_file(self.to_text())
        return {"text/plain": text, "text/html": _on_a_line(self.to_html())}


def _on_a_line(html: str) -> str:
    """A notebook's file makes a line of each, quoted and indented: one that shows is written as
    a reference, another as a blank."""
    return "".join(
        part.replace("\n", "&#10;")
        if part.startswith("<pre")
        else _BETWEEN.sub("", part).replace("\n", " ")
        for part in _PRE.split(html)
    )
