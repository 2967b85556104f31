"""How one process failed, whatever it is known from: its record, its log or elastic's file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..match import Match, match_message
from ..search.logs import CONSEQUENCES


def is_consequence(message: str) -> bool:
    """Whether an error says no more than that another process has failed."""
    return any(text in message for text in CONSEQUENCES)


@dataclass(frozen=True)
class Failure:
    """What one rank raised, or did wrong.

    `cause` is what its report found, "" where there is no report; `entries` are the causes that
    its message alone allows.  `places` are the user's lines, outermost first, as in the report;
    `lines` are the lines that the report blames, else the innermost of the user's.  `text` is the
    report as its reader would have seen it.
    """

    rank: int | None
    message: str
    kind: str = ""
    match: Match | None = None
    cause: str = ""
    places: tuple[Mapping[str, Any], ...] = ()
    lines: tuple[tuple[str, int], ...] = ()
    text: str = ""
    report: Mapping[str, Any] | None = field(default=None, compare=False)
    origin: str = field(default="", compare=False)

    @property
    def place(self) -> Mapping[str, Any] | None:
        """The innermost of the user's lines."""
        return self.places[-1] if self.places else None

    @property
    def line(self) -> tuple[str, int] | None:
        """File and number of that line."""
        return None if self.place is None else line_of(self.place)

    @property
    def pattern(self) -> str:
        """What its message is known as, "" where autograd has no such message."""
        return "" if self.match is None else self.match.pattern

    @property
    def in_consequence(self) -> bool:
        """Whether it only says that another rank failed."""
        return not self.cause and self.match is None and is_consequence(self.message)


def line_of(place: Mapping[str, Any]) -> tuple[str, int]:
    """What two mentions of one line have in common, on whatever machine it was."""
    return str(place.get("file") or f"In[{place.get('cell')}]"), int(place.get("line") or 0)


def of_report(report: Mapping[str, Any], rank: int | None, text: str = "") -> Failure:
    """The failure that a report tells of; `text` is how it was shown."""
    places = [e["place"] for e in report["events"] if e["place"] is not None]
    return Failure(
        rank=rank,
        message=report["message"],
        kind=report["kind"],
        match=match_message(report["message"]) if report["message"] else None,
        cause=report["id"],
        places=tuple(places[-1:]),
        lines=tuple(map(line_of, places)),
        text=text or f"{report['headline']}\n\n{report['explanation']}\n",
        report=report,
    )
