"""A cause's rewrites as a table: under which condition, which edit, told by which text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeAlias, TypeVar

from ...model import Edits, Finding, Place, Safety, What
from ...program import Program
from ..engine.proposal import Proposal, Propose

if TYPE_CHECKING:
    from .spot import Site

D = TypeVar("D")
P = ParamSpec("P")


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

    def proposed(self, site: Site[D], changes: bool) -> Iterator[Proposal]:
        edits = self.edit(site) if self.when(site.details) else None
        changes = changes if self.changes is None else self.changes
        safety = Safety.CHANGES_MEANING if changes else Safety.SAME_GRADIENTS
        intended = changes or self.intended_difference
        if edits:
            yield Proposal(self.key, edits, safety, intended_difference=intended)


#: What proposes at a site: a row, or a function where one rewrite depends on another.
Row: TypeAlias = "Fix[D] | Callable[[Site[D]], Iterable[Proposal]]"


def by_table(*rows: Row[D], at: What = What.CAUSE, changes: bool = False) -> Propose[D]:
    """The `propose` of a cause whose rewrites are rows: those that fit, in order, none twice.

    Each is made at the first event of the sort `at`; without one there is none.  `changes` says of
    those that do not say it themselves what it says of a row.
    """

    def propose(finding: Finding[D], program: Program) -> Iterator[Proposal]:
        from .spot import Site  # and with it LibCST

        place = finding.place(at)
        if place is None:
            return
        site, seen = Site(program, place, finding), set()
        for row in rows:
            proposed = row.proposed(site, changes) if isinstance(row, Fix) else row(site)
            for proposal in proposed:
                if proposal.edits not in seen:
                    seen.add(proposal.edits)
                    yield proposal

    return propose
