"""A proposed change of the user's program, before anything was run; and a cause's proposals as a
table: under which condition, which edit, told by which text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Concatenate, Generic, ParamSpec, TypeAlias, TypeVar

from ...model import Edits, Finding, Place, Safety, What
from ...program import Program

D = TypeVar("D")
P = ParamSpec("P")


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


def differing(
    fix: str, edits: Edits | None, corrects: bool = False, **facts: str
) -> Iterator[Proposal]:
    """A change that computes something else on purpose, where there is one."""
    if edits:
        yield Proposal(fix, edits, Safety.CHANGES_MEANING, facts, True, corrects)


Propose: TypeAlias = Callable[[Finding[D], Program], Iterator[Proposal]]


@dataclass(frozen=True)
class Site(Generic[D]):
    """Where a rewrite is made, and what the diagnosis knows that it needs."""

    program: Program
    place: Place
    finding: Finding[D]

    @property
    def details(self) -> D:
        return self.finding.details


def at_place(
    transform: Callable[Concatenate[Program, Place, P], Edits | None],
    *args: P.args,
    **kwargs: P.kwargs,
) -> Callable[[Site[Any]], Edits | None]:
    """The edit that a transformer makes at the site's place."""
    return lambda site: transform(site.program, site.place, *args, **kwargs)


@dataclass(frozen=True)
class Fix(Generic[D]):
    """A row: where `when` holds of the finding's details, `edit` is proposed.

    `key` names the section `## fix <key>` of the cause's texts.  `intended_difference` marks what
    may give other gradients than the reference on purpose, `changes` what is sure to compute
    something else than the program as written, which is intended, too; None: as the table says.
    """

    key: str
    edit: Callable[[Site[D]], Edits | None]
    when: Callable[[D], bool] = lambda _: True
    changes: bool | None = None
    intended_difference: bool = False

    def proposed(self, edits: Edits, changes: bool) -> Proposal:
        changes = changes if self.changes is None else self.changes
        safety = Safety.CHANGES_MEANING if changes else Safety.SAME_GRADIENTS
        intended = changes or self.intended_difference
        return Proposal(self.key, edits, safety, intended_difference=intended)


def by_table(*rows: Fix[D], at: What = What.CAUSE, changes: bool = False) -> Propose[D]:
    """The `propose` of a cause whose rewrites are rows: those that fit, in order, none twice.

    Each is made at the first event of the sort `at`; without one there is none.  `changes` says of
    those that do not say it themselves what it says of a row.
    """

    def propose(finding: Finding[D], program: Program) -> Iterator[Proposal]:
        place = finding.place(at)
        if place is None:
            return
        site, seen = Site(program, place, finding), set()
        for row in rows:
            edits = row.edit(site) if row.when(site.details) else None
            if edits and edits not in seen:
                seen.add(edits)
                yield row.proposed(edits, changes)

    return propose
