"""A proposed change of the user's program, before anything was run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from ...model import Edits, Finding, Safety
from ...program import Program

D = TypeVar("D")


@dataclass(frozen=True)
class Proposal:
    """All edits are applied or none.  `fix` names the `## fix <fix>` section of the cause's text.

    `intended_difference` marks a choice that computes something else on purpose (detach the RNN
    state): it stays proposed where the comparison with the reference differs.  `corrects` marks
    one where the program as written hardly means what it computes (a write of one call is felt in
    the next): where it differs from the reference, it goes before those that agree with it.
    """

    fix: str
    edits: Edits
    safety: Safety = Safety.SAME_GRADIENTS
    facts: Mapping[str, str] = field(default_factory=dict)
    intended_difference: bool = False
    corrects: bool = False


def same(fix: str, edits: Edits | None) -> Iterator[Proposal]:
    """A change that computes the same, where there is one."""
    if edits:
        yield Proposal(fix, edits)


def differing(
    fix: str, edits: Edits | None, corrects: bool = False, **facts: str
) -> Iterator[Proposal]:
    """A change that computes something else on purpose, where there is one."""
    if edits:
        yield Proposal(fix, edits, Safety.CHANGES_MEANING, facts, True, corrects)


Propose: TypeAlias = Callable[[Finding[D], Program], Iterator[Proposal]]
