"""The edits that may repair a program, by how likely they are to: near the report, of a kind that
often repairs what torch complained of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from ..model import Finding, Safety
from ..rewrite import Proposal, merge
from ..rewrite.engine.proposal import Edits
from ..rewrite.engine.tree import tree_of
from ..rewrite.operators.site import Change, Site
from ..rewrite.operators.table import OPERATORS
from ..verify import Request
from ..verify.cells import cells_of
from .priors import prior
from .slice import nearness

_MOST_CHANGES = 4000  #: that are ranked, those at the nearest statements
_MOST_SITES = 1000
_LONGEST = 60  #: characters of the user's code in a title
_MOST_EQUAL = 12  #: equal mistakes that are changed together
_MOST_LOOKED_AT = 60  #: statements in which they are looked for
_SAME_MEANING = frozenset(
    "clone clone_first clone_elements out_of_place compute_again leaf_last retain_grad "
    "no_inference_mode".split()
)


@dataclass(frozen=True)
class Candidate:
    """One or more changes of one kind, and how likely they are to repair."""

    score: float
    changes: tuple[Change, ...]

    @property
    def operator(self) -> str:
        return self.changes[0].operator

    def edits(self) -> Edits | None:
        """All that can be made of its changes; None where that is less than is meant."""
        made = [edits for change in self.changes if (edits := change.make())]
        enough = 1 if len(self.changes) == 1 else 2
        return merge(*made) if enough <= len(made) <= _MOST_EQUAL else None

    def proposal(self) -> Proposal | None:
        edits = self.edits()
        if not edits:
            return None
        same = self.operator in _SAME_MEANING
        safety = Safety.SAME_GRADIENTS if same else Safety.CHANGES_MEANING
        code = " ".join(self.changes[0].code.split())
        code = code if len(code) <= _LONGEST else f"{code[: _LONGEST - 1]}…"
        return Proposal(f"repair_{self.operator}", edits, safety, {"code": code})


def candidates(finding: Finding, request: Request) -> list[Candidate]:
    """Every change that an operator would make somewhere, the likeliest first."""
    sites = list(_sites(request))
    near = nearness(sites, finding)
    changes = (
        change
        for site in sorted(sites, key=lambda site: -near[site.statement])
        for operator in OPERATORS
        for change in operator(site)
    )
    single = [
        Candidate(near[c.site.statement] * prior(c.operator, request.reference), (c,))
        for c in islice(changes, _MOST_CHANGES)
    ]
    every = [c for c in (*single, *_together(single)) if c.score > 0]
    return sorted(every, key=lambda c: -c.score)


def _sites(request: Request) -> Iterator[Site]:
    """The statements of the program; of a very long one, those of its last cells."""
    count = 0
    for cell in reversed(cells_of(request.program, request.cell)):
        source = request.program.cell(cell.number)
        tree = tree_of(source)
        if source is not None and source.text == cell.text:
            yield from (Site(request.program, tree, s) for s in tree.statements)
            count += len(tree.statements)
        if count >= _MOST_SITES:
            return


def _together(single: Iterable[Candidate]) -> Iterator[Candidate]:
    """Equal mistakes changed together."""
    groups: dict[tuple[str, str], list[Candidate]] = {}
    for candidate in single:
        change = candidate.changes[0]
        if change.group:
            groups.setdefault((change.operator, change.group), []).append(candidate)
    for members in groups.values():
        if 1 < len(members) <= _MOST_LOOKED_AT:
            changes = tuple(m.changes[0] for m in members)
            yield Candidate(0.9 * max(m.score for m in members), changes)
