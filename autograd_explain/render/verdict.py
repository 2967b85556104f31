"""What trying somebody's own text showed, for a person or a program to read."""

from __future__ import annotations

from dataclasses import dataclass

from ..model import Rewrite
from .labels import word
from .view import outcome_reason


@dataclass(frozen=True)
class Verdict:
    """Whether a candidate's gradients are the intended ones.

    `outcome` is "verified" (they agree with the reference), "differs", "runs" (it does, and that
    is all that could be shown), "fails" or "not_tried"; `reason` says why, in words.  `compared`
    and `differing` name gradients and values (`net.weight.grad`).
    """

    outcome: str
    reason: str
    compared: tuple[str, ...] = ()
    differing: tuple[str, ...] = ()
    language: str = "en"

    def __str__(self) -> str:
        colon = "：" if self.language in ("ja", "zh") else ": "
        return f"{word(f'outcome_{self.outcome}', self.language)}{colon}{self.reason}"

    def to_dict(self) -> dict[str, object]:
        """The verdict as JSON types."""
        return {
            "outcome": self.outcome,
            "reason": self.reason,
            "compared": list(self.compared),
            "differing": list(self.differing),
        }


def verdict_of(tried: Rewrite, language: str) -> Verdict:
    """The public form of a rewrite that was tried."""
    comparison = tried.comparison
    return Verdict(
        tried.outcome.value,
        outcome_reason(tried, language).plain(),
        () if comparison is None else comparison.compared,
        () if comparison is None else comparison.differing,
        language,
    )
