"""The reports of several processes as one that can be shown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any

from ..render.explanation import Explanation
from ..render.shown import Shown
from ..search.words import say
from .failure import of_report
from .merge import merge as merge_failures

if TYPE_CHECKING:
    from rich.text import Text


@dataclass(frozen=True)
class Told:
    """A report, and the ranks that met the same cause at the same lines."""

    ranks: tuple[int, ...]
    report: Explanation


@dataclass(frozen=True)
class Account(Shown):
    """What several processes met: each cause at one place once, with its ranks."""

    told: tuple[Told, ...]

    def in_language(self, language: str) -> Account:
        """The same in "en", "ja" or "zh"."""
        return Account(tuple(replace(t, report=t.report.in_language(language)) for t in self.told))

    def to_dict(self) -> dict[str, Any]:
        """The account as JSON types."""
        causes = [{"ranks": list(t.ranks), "report": t.report.to_dict()} for t in self.told]
        return {"schema": 1, "causes": causes}

    def to_markdown(self) -> str:
        return "\n".join(f"**{_who(t)}**\n\n{t.report.to_markdown()}" for t in self.told)

    def to_html(self) -> str:
        return "".join(f"<p>{escape(_who(t))}</p>{t.report.to_html()}" for t in self.told)

    def _draw(self, width: int) -> Text:
        from rich.text import Text

        parts = [part for t in self.told for part in (Text(_who(t)), t.report._draw(width))]
        return Text("\n").join(parts)


def _who(told: Told) -> str:
    key = "rank" if len(told.ranks) == 1 else "ranks"
    return say(key, told.report.language, ranks=", ".join(map(str, told.ranks)))


def account(reports: Iterable[Explanation | None]) -> Account:
    """The reports by rank, None where a rank has none, as one account."""
    known = {n: report for n, report in enumerate(reports) if report is not None}
    groups = merge_failures(of_report(report.to_dict(), n) for n, report in known.items()).causes
    return Account(tuple(Told(g.ranks, known[g.best.rank or 0]) for g in groups))
