"""An Answer: what the knowledge base says about a text, ready to be shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..match import Match
from ..render.shown import Shown
from ..render.topic import Topic
from .words import say

if TYPE_CHECKING:
    from rich.text import Text

SCHEMA = 1
_MESSAGE = 120  #: characters of a message that is only to be recognised again


@dataclass(frozen=True)
class Answer(Shown):
    """The entries that fit a text, the best first, and the message that was recognised in it.

    `match` is None for a question.  `topics` may be empty for a message that autograd has but no
    entry explains.
    """

    query: str
    language: str
    match: Match | None = None
    topics: tuple[Topic, ...] = field(default=(), repr=False)

    @property
    def id(self) -> str:
        """The name of the entry that fits best; "unknown" where only the message is known."""
        return self.topics[0].name if self.topics else "unknown"

    def in_language(self, language: str) -> Answer:
        """The same answer in "en", "ja" or "zh"."""
        topics = tuple(topic.in_language(language) for topic in self.topics)
        return replace(self, language=language, topics=topics)

    def to_dict(self) -> dict[str, Any]:
        """The answer as JSON types."""
        return {
            "schema": SCHEMA,
            "id": self.id,
            "query": self.query,
            "language": self.language,
            "message": None if self.match is None else message_dict(self.match),
            "entries": [
                {"id": t.name, "title": t.title, "summary": t.summary.plain()} for t in self.topics
            ],
            "explanation": self.topics[0].to_markdown() if self.topics else "",
        }

    def to_markdown(self) -> str:
        parts = [*(f"- {line}" for line in self._lines())]
        story = self.topics[0].to_markdown() if self.topics else ""
        return "\n\n".join(part for part in (story, "\n".join(parts)) if part) + "\n"

    def to_html(self) -> str:
        from html import escape

        lines = "".join(f"<p>{escape(line)}</p>" for line in self._lines())
        return (self.topics[0].to_html() if self.topics else "") + lines

    def _draw(self, width: int) -> Text:
        from rich.text import Text

        from ..render.wrap import wrap

        notes = [part for line in self._lines() for part in wrap(Text(line), width)]
        story = [self.topics[0]._draw(width)] if self.topics else []
        return Text("\n").join([*story, *notes])

    def _lines(self) -> Iterator[str]:
        """What else is to be said: the message's values, and the other entries that fit."""
        if self.match is not None:
            yield from message_lines(self.match, self.language)
            if not self.topics:
                yield say("no_entry", self.language)
        others = [f"{t.title} ({t.name})" for t in self.topics[1:]]
        if others:
            yield say("also", self.language, entries="; ".join(others))


def message_dict(match: Match) -> dict[str, Any]:
    """A recognised message as JSON types."""
    return {
        "id": match.pattern,
        "family": match.family,
        "likelihood": match.likelihood,
        "torch": match.torch,
        "text": match.message,
        "captures": dict(match.captures),
        "siblings": list(match.siblings),
    }


def message_lines(match: Match, language: str) -> Iterator[str]:
    """The message that was recognised, the releases that had this wording, and its values."""
    known = say("recognised", language, text=_shortened(match.message))
    yield known + (say("wording", language, releases=match.torch) if match.torch else "")
    values = _values(match.captures)
    if values:
        yield say("values", language, values=values)


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MESSAGE else f"{line[: _MESSAGE - 1]}…"


def _values(captures: Mapping[str, str]) -> str:
    shown = ((name, " ".join(value.split())) for name, value in captures.items())
    return ", ".join(f"{name} = {value[:80]}" for name, value in shown if value)
