"""The Explanation: what the user holds, shows, pastes and asks again in another language."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..model import Diagnosis
from . import texts as texts_module
from .texts import Document
from .view import View, view_of

UNKNOWN = "unknown"


@dataclass(frozen=True)
class Explanation:
    """A diagnosis in a language.  It holds no tensor and no frame, and pickles.

    `texts` are the cause's text files by language; left out, they are read from the knowledge
    folder of that name (a cause without a text borrows the one of "unknown").  `detail` is
    "short" or "full".
    """

    diagnosis: Diagnosis
    language: str = "en"
    detail: str = "short"
    texts: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if not self.texts:
            object.__setattr__(self, "texts", texts_of(self.diagnosis.finding.cause))

    @property
    def id(self) -> str:
        """The cause's name."""
        return self.diagnosis.finding.cause

    @property
    def headline(self) -> str:
        return self._view.headline.plain()

    def in_language(self, language: str) -> Explanation:
        """The same explanation in "en", "ja" or "zh"; nothing is diagnosed again."""
        return replace(self, language=language)

    def with_detail(self, detail: str) -> Explanation:
        """The same explanation, "short" or "full"."""
        return replace(self, detail=detail)

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON types (schema 1)."""
        from .report import to_dict

        return to_dict(self.diagnosis, self._view, self._document)

    def to_markdown(self) -> str:
        """The whole report as Markdown, for an issue or a chat."""
        from .report import to_markdown

        return to_markdown(self.diagnosis, self._view)

    def to_text(self, width: int = 88) -> str:
        """The report as plain text without colour."""
        from .text import plain

        return plain(self._view, self.detail, width)

    def to_html(self) -> str:
        """The report as HTML: no script, everything from the user's program escaped."""
        from .html import html

        return html(self._view, self.detail)

    def print(self, file: Any = None) -> None:
        """Write the report to a stream (standard output), in colour on a terminal."""
        from .text import for_terminal

        file = sys.stdout if file is None else file
        print(for_terminal(self._view, self.detail, file), file=file)

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"<Explanation {self.id}: {self.headline}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """What notebooks and terminals show; `text/plain` is complete by itself."""
        from .text import for_terminal

        terminal = bool(getattr(sys.stdout, "isatty", bool)())
        text = for_terminal(self._view, self.detail) if terminal else self.to_text()
        return {"text/plain": text, "text/html": self.to_html()}

    @property
    def _document(self) -> Document:
        return texts_module.document(self.texts, self.language)

    @property
    def _view(self) -> View:
        return view_of(self.diagnosis, self._document, self.language)


def texts_of(cause: str) -> dict[str, str]:
    """The text files of a built-in or installed cause, or those of "unknown"."""
    from ..knowledge.entry import entries

    known = entries()
    entry = known.get(cause) or known.get(UNKNOWN)
    return {} if entry is None else texts_module.load(entry.folder)
