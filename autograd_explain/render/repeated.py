"""What is shown of a failure that was reported before: a line that counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .explanation import Explanation
from .labels import label
from .shown import Shown
from .texts import Passage

if TYPE_CHECKING:
    from rich.text import Text


@dataclass(frozen=True)
class Repeated(Shown):
    """The `count`th time that a cell ended in `explanation`, which is the same in everything.

    `cell` is where the report can still be read.  Without it, HTML has the report folded, as a
    front end may have taken the earlier output away.
    """

    explanation: Explanation
    count: int
    cell: int | None = None

    def to_html(self) -> str:
        from .html import repeated_html

        whole = self.explanation.to_html() if self.cell is None else ""
        return repeated_html(self._parts(), whole, self.explanation.language)

    def to_markdown(self) -> str:
        return " ".join(part.markdown() for part in self._parts()) + "\n"

    def _draw(self, width: int) -> Text:
        from .text import repeated

        return repeated(self._parts(), width)

    def _parts(self) -> tuple[Passage, Passage, Passage]:
        """What it was, how often and where, and how to see it whole."""
        language = self.explanation.language
        return self.explanation.summary, self._line(), label("hint_again", language)

    def _line(self) -> Passage:
        language = self.explanation.language
        return label(
            "same_again",
            language,
            count=_ordinal(self.count) if language == "en" else self.count,
            cell=None if self.cell is None else f"In[{self.cell}]",
        )


def _ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 11th, 21st."""
    endings = {1: "st", 2: "nd", 3: "rd"}
    return f"{number}{'th' if number // 10 % 10 == 1 else endings.get(number % 10, 'th')}"
