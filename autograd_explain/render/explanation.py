"""The Explanation: what the user holds, shows, pastes and asks again in another language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..model import Diagnosis, Kind, Reason
from . import texts as texts_module
from .shown import WIDTH, Shown
from .texts import Document, Passage
from .view import View, view_of

if TYPE_CHECKING:
    from rich.text import Text

UNKNOWN = "unknown"


@dataclass(frozen=True)
class Explanation(Shown):
    """A diagnosis in a language.  It holds no tensor and no frame, and pickles.

    `texts` are the cause's text files by language; left out, they are read from the knowledge
    folder of that name (a cause without a text borrows the one of "unknown").  `detail` is
    "short" or "full".  `notes` are what else the same cell showed that the program may well mean.
    """

    diagnosis: Diagnosis
    language: str = "en"
    detail: str = "short"
    texts: Mapping[str, str] = field(default_factory=dict, repr=False)
    notes: tuple[Explanation, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        if not self.texts:
            object.__setattr__(self, "texts", texts_of(self.diagnosis.finding.cause))

    @property
    def id(self) -> str:
        """The cause's name."""
        return self.diagnosis.finding.cause

    @property
    def headline(self) -> str:
        return self.summary.plain()

    @property
    def summary(self) -> Passage:
        """The headline with its markup."""
        return self._view.headline

    def in_language(self, language: str) -> Explanation:
        """The same explanation in "en", "ja" or "zh"; nothing is diagnosed again."""
        notes = tuple(n.in_language(language) for n in self.notes)
        return replace(self, language=language, notes=notes)

    def with_detail(self, detail: str) -> Explanation:
        """The same explanation, "short" or "full"."""
        return replace(self, detail=detail)

    def as_note(self) -> Explanation:
        """The same as a note: a silent finding that the program may well mean."""
        return replace(self, diagnosis=replace(self.diagnosis, kind=Kind.NOTE))

    def with_reason(self, key: str) -> Explanation:
        """The same with a remark under it, a key of `render.reasons`."""
        notes = (*self.diagnosis.notes, Reason(key))
        return replace(self, diagnosis=replace(self.diagnosis, notes=notes))

    def with_notes(self, notes: Sequence[Explanation]) -> Explanation:
        """The same with what else its cell showed."""
        return replace(self, notes=tuple(notes))

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON types (schema 1)."""
        from .report import to_dict

        found = to_dict(self.diagnosis, self._view, self._document)
        return {**found, "notes": [note.to_dict() for note in self.notes]}

    def to_markdown(self) -> str:
        """The whole report as Markdown, for an issue or a chat."""
        from .report import to_markdown

        return to_markdown(self.diagnosis, self._view)

    def to_html(self) -> str:
        """The report as HTML: no script, everything from the user's program escaped."""
        from .html import html

        return html(self._view, self.detail)

    def __repr__(self) -> str:
        return f"<Explanation {self.id}: {self.headline}>"

    def to_text(self, width: int = WIDTH) -> str:
        """Plain text without colour; the lines of a diff are whole, however long."""
        from .text import draw, report

        return draw(report(self._view, self.detail, width, whole=True), color=False)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """Besides what is seen, the report as data, for tools that read notebooks."""
        from .report import MIMETYPE, brief

        bundle: dict[str, Any] = {**super()._repr_mimebundle_(include, exclude)}
        return {**bundle, MIMETYPE: brief(self.to_dict())}

    def _draw(self, width: int) -> Text:
        from .text import report

        return report(self._view, self.detail, width)

    @property
    def _document(self) -> Document:
        own = texts_module.document(self.texts, self.language)
        if all(f"fix {rewrite.fix}" in own.sections for rewrite in self.diagnosis.rewrites):
            return own
        general = texts_module.document(_texts_of_operators(), self.language)
        return replace(own, sections={**general.sections, **own.sections})

    @property
    def _view(self) -> View:
        return view_of(self.diagnosis, self._document, self.language, self.detail)


@cache
def _texts_of_operators() -> dict[str, str]:
    """What a search proposes is told in the words of its operators, whatever the cause."""
    return texts_module.load(Path(__file__).parents[1] / "rewrite" / "operators")


def texts_of(cause: str) -> dict[str, str]:
    """The text files of a built-in or installed cause, or those of "unknown"."""
    from ..knowledge.entry import entries

    known = entries()
    entry = known.get(cause) or known.get(UNKNOWN)
    return {} if entry is None else texts_module.load(entry.folder)
