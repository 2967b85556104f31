"""The edits that may repair a program, by how likely they are to: near the report, of a kind that
often repairs what torch complained of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

import libcst as cst

from ..loaded import is_on_disk
from ..model import Finding, Reason, Rewrite, Role, Safety, What
from ..program import Program, Source
from ..program_index import index_of
from ..rewrite import Proposal
from ..rewrite.analysis.inplace_writes import without_data, written_in
from ..rewrite.engine.edits import merge
from ..rewrite.engine.tree import tree_of
from ..rewrite.operators.site import Change, Site
from ..rewrite.operators.table import OPERATORS
from ..verification import SCRIPT, Reference, Request
from ..verification.cells import cells_of
from .priors import may_differ, prior, shown_unverified
from .slice import nearness

_MOST_CHANGES = 4000  #: that are ranked, those at the nearest statements
_MOST_SITES = 1000
_LONGEST = 60  #: characters of the user's code in a title
_MOST_EQUAL = 12  #: equal mistakes that are changed together
_MOST_LOOKED_AT = 60  #: statements in which they are looked for
_MOST_SHOWN = 2
#: Of the first edits with this score five in six are right, with 0.15 seven in ten.
_LIKELY = 0.3
_SAME_MEANING = frozenset(
    "clone clone_first out_of_place compute_again leaf_last retain_grad".split()
)


@dataclass(frozen=True)
class Candidate:
    """One or more changes of one kind, and how likely they are to repair; `first` is the operator
    of the edit that they go with, if any."""

    score: float
    changes: tuple[Change, ...]
    reference: Reference
    first: str = ""

    @property
    def operator(self) -> str:
        return self.changes[0].operator

    @property
    def shown(self) -> bool:
        """Whether it is worth showing where it runs, though nothing confirms it."""
        return shown_unverified(self.operator, self.reference)

    @property
    def may_differ(self) -> bool:
        """Whether gradients other than the reference's may be what is meant."""
        return any(may_differ(name, self.reference) for name in (self.operator, self.first))

    def proposal(self) -> Proposal | None:
        """All that can be made of its changes; None where that is less than is meant."""
        made = [edits for change in self.changes if (edits := change.make())]
        enough = 1 if len(self.changes) == 1 else 2
        edits = merge(*made) if enough <= len(made) <= _MOST_EQUAL else None
        if not edits:
            return None
        same = self.operator in _SAME_MEANING
        safety = Safety.SAME_GRADIENTS if same else Safety.CHANGES_MEANING
        code = shortened(self.changes[0].code)
        return Proposal(f"repair_{self.operator}", edits, safety, {"code": code})


def shortened(code: str) -> str:
    """Code of the user's as a title may hold it."""
    code = " ".join(code.split())
    return code if len(code) <= _LONGEST else f"{code[: _LONGEST - 1]}…"


def candidates(finding: Finding, request: Request) -> list[Candidate]:
    """Every change that an operator would make somewhere, the likeliest first."""
    sites = list(_sites(request))
    near = nearness(sites, finding)
    reference = request.reference
    changes = (
        change
        for site in sorted(sites, key=lambda site: -near[site.statement])
        for operator in OPERATORS
        for change in operator(site)
        if not _takes_a_leaf(finding, change)
    )
    single = [
        Candidate(near[c.site.statement] * prior(c.operator, reference), (c,), reference)
        for c in islice(changes, _MOST_CHANGES)
    ]
    every = [c for c in (*single, *_together(single)) if c.score > 0]
    return sorted(every, key=lambda c: -c.score)


def _takes_a_leaf(finding: Finding, change: Change) -> bool:
    """Whether a change gives a computed tensor to the attribute that holds the overwritten leaf: a
    module takes none for a parameter, and an optimizer goes on with the leaf."""
    culprit, write = finding.tensor(Role.CULPRIT), finding.place(What.CHANGED)
    leaf = culprit is not None and culprit.is_leaf and culprit.requires_grad
    site = change.site
    if not leaf or change.operator != "out_of_place" or write is None:
        return False
    if site.place.line_id != write.line_id:
        return False
    written = written_in(site.tree, site.statement)
    return any(isinstance(without_data(w), cst.Attribute) for w in written)


def _sites(request: Request) -> Iterator[Site]:
    """The statements of the program; of a very long one, those of its last cells."""
    count = 0
    for source in dict.fromkeys(_sources(request)):
        tree = tree_of(request.program, source)
        yield from (Site(request.program, tree, s) for s in tree.statements)
        count += len(tree.statements)
        if count >= _MOST_SITES:
            return


def _sources(request: Request) -> Iterator[Source]:
    """The cells, the last first, then the user's files; none that is another text by now."""
    program = request.program
    for cell in reversed(cells_of(program, request.cell)):
        source = program.source(cell.filename) if cell.number == SCRIPT else None
        source = source or program.cell(cell.number)
        if source is not None and source.text == cell.text:
            yield source
    yield from (source for source in index_of(program).files if _is_unchanged(program, source))


def _is_unchanged(program: Program, source: Source) -> bool:
    """Whether a file is on disk as it ran: what the user has changed since is not ours to undo."""
    ran = program.origin.source(source.filename)
    return ran is not None and not ran.changed and is_on_disk(ran.filename, ran.text)


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
            yield replace(members[0], score=0.9 * max(m.score for m in members), changes=changes)


def likely(finding: Finding, request: Request) -> tuple[Rewrite, ...]:
    """The likeliest edits, untried; () where even the first is too often wrong."""
    found: list[Rewrite] = []
    for candidate in candidates(finding, request):
        if candidate.score < _LIKELY or len(found) == _MOST_SHOWN:
            break
        made = candidate.proposal()
        if made is not None and all(made.edits != rewrite.edits for rewrite in found):
            reason = Reason("likely")
            found.append(Rewrite(made.fix, made.edits, made.safety, made.facts, reason=reason))
    return tuple(found)
