"""The whole story of a cause, without a live program: `%autograd_explain <cause>`, the docs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from . import texts as texts_module
from .shown import Shown
from .topic_content import TopicContent

if TYPE_CHECKING:
    from rich.text import Text


@dataclass(frozen=True)
class Topic(TopicContent, Shown):
    """A cause's texts in a language, to be shown.  It pickles."""

    def in_language(self, language: str) -> Topic:
        """The same topic in "en", "ja" or "zh"."""
        return replace(self, language=language)

    def to_html(self) -> str:
        from .html import topic_html

        return topic_html(self)

    def to_markdown(self) -> str:
        from .report import topic_markdown

        return topic_markdown(self)

    def _draw(self, width: int) -> Text:
        from .story import story

        return story(self, width)

    def __repr__(self) -> str:
        return f"<Topic {self.name}: {self.title}>"


def topic_of(
    folder: Path,
    example: Mapping[str, str],
    language: str = "en",
    messages: tuple[str, ...] = (),
) -> Topic:
    """The topic of a knowledge folder; show it, or ask it for text, HTML or Markdown."""
    return Topic(
        name=folder.name,
        language=language,
        texts=texts_module.load(folder),
        example=dict(example),
        case=_program(folder / "case.py"),
        fixed=_program(folder / "fixed.py"),
        messages=messages,
        folder=folder,
    )


def _program(path: Path) -> str:
    return path.read_text("utf-8") if path.exists() else ""
