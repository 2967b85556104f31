"""The search: changes best first, tried in groups until one is verified or the time is over."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice

from ..model import Finding, Kind, Outcome, Rewrite, Safety, What
from ..rewrite import Proposal, apply, merge
from ..rewrite.engine.proposal import Edits
from ..rewrite.engine.tree import tree_of
from ..rewrite.operators.site import Change, Site
from ..rewrite.operators.table import OPERATORS
from ..verify import Reference, Request, evidence_against, verify
from ..verify.cells import cells_of
from .priors import prior, shown_unverified
from .slice import nearness

_MOST_SHOWN = 3
_MOST_TRIED = 240
_MOST_CHANGES = 4000  #: that are ranked, those at the nearest statements
_MOST_SITES = 1000
_BATCHES = (16, 32, 64, 128)
_CHOICE = 4  #: that run, to choose from where nothing can be verified
#: Why there is no reference for any rewrite of the program.
_NO_REFERENCE = frozenset(
    "older_graph overwritten_earlier reference_failed recomputed too_large nondeterministic "
    "overwritten_between".split()
)
_WEIGHED = 12  #: of those, how many are looked at more closely
_DOUBTFUL = 2  #: so much speaks against a rewrite that others are looked for
_SHARE = 0.8  #: of the time, for finding them
_LONGEST = 60  #: characters of the user's code in a title
_MOST_EQUAL = 12  #: equal mistakes that are changed together
_MOST_LOOKED_AT = 60  #: statements in which they are looked for
_SAME_MEANING = frozenset(
    "clone clone_first clone_elements out_of_place compute_again leaf_last retain_grad "
    "no_inference_mode".split()
)


@dataclass(frozen=True)
class _Candidate:
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


_Tried = tuple[_Candidate, Rewrite]
_Rewrites = tuple[Rewrite, ...]


def search(finding: Finding, request: Request, known: tuple[Rewrite, ...]) -> tuple[Rewrite, ...]:
    """The rewrites that a cause proposed, and further ones where none of those is of use."""
    if not _searchable(request) or _settled(known):
        return tuple(known)
    start = time.monotonic()
    doubtful: Sequence[Rewrite] = ()
    found: list[_Tried] = []
    with suppress(KeyboardInterrupt):
        known, doubtful = _divided(known, request)
        if not any(rewrite.outcome is Outcome.RUNS for rewrite in known):
            left = request.seconds - (time.monotonic() - start)
            found = _found(finding, replace(request, seconds=left))
    return _ordered(known, _chosen(found), doubtful)


def _searchable(request: Request) -> bool:
    """Where a program ran to its end, something has to tell a repair from any other edit."""
    if request.kind is Kind.ERROR:
        return True
    tells = request.reference is not Reference.NONE or bool(request.awaited)
    return tells and request.kind is not Kind.NOTE


def _settled(known: Sequence[Rewrite]) -> bool:
    """Whether one that the cause proposed is verified, or was meant to differ."""
    settles = (Outcome.VERIFIED, Outcome.DIFFERS)
    return any(r.outcome in settles for r in known) or _interrupted(known)


def _divided(known: Sequence[Rewrite], request: Request) -> tuple[_Rewrites, _Rewrites]:
    """What the cause proposed, without those that run and of which evidence says that they are
    no repair; and those."""
    running = [rewrite for rewrite in known if rewrite.outcome is Outcome.RUNS]
    if not running or request.seconds <= 0:
        return tuple(known), ()
    found = evidence_against([Proposal(r.fix, r.edits) for r in running], request)
    against = zip(running, found, strict=True)
    doubtful = tuple(rewrite for rewrite, much in against if much == _DOUBTFUL)
    return tuple(r for r in known if r not in doubtful), doubtful


def _interrupted(rewrites: Iterable[Rewrite]) -> bool:
    return any(rewrite.reason.key == "interrupted" for rewrite in rewrites)


def _found(finding: Finding, request: Request) -> list[_Tried]:
    """The candidates that were tried; where none is verified, only those that say something."""
    start = time.monotonic()
    end = start + _SHARE * request.seconds
    found: list[_Tried] = []
    for batch in _batches(_candidates(finding, request)):
        left = end - time.monotonic()
        tried = _tried(batch, replace(request, seconds=left)) if left > 0 else []
        found += tried
        if _interrupted(rewrite for _, rewrite in tried):
            return []
        if _enough(found, request) or _over(tried):
            break
    if any(rewrite.outcome is Outcome.VERIFIED for _, rewrite in found):
        return found
    found = _worth_showing(found, finding, request)
    left = start + request.seconds - time.monotonic()
    return _weighed(found, replace(request, seconds=left))


def _ordered(known: _Rewrites, found: _Rewrites, doubtful: Sequence[Rewrite]) -> _Rewrites:
    """Verified ones first, then what the cause proposed, unless evidence speaks against it."""
    verified = [r for r in found if r.outcome is Outcome.VERIFIED]
    rest = [r for r in found if r.outcome is not Outcome.VERIFIED]
    ordered = (*verified, *known, *rest, *doubtful)
    return ordered[: max(_MOST_SHOWN, len(known) + len(doubtful))]


def _candidates(finding: Finding, request: Request) -> list[_Candidate]:
    sites = list(_sites(request))
    near = nearness(sites, finding)
    changes = (
        change
        for site in sorted(sites, key=lambda site: -near[site.statement])
        for operator in OPERATORS
        for change in operator(site)
    )
    single = [
        _Candidate(near[c.site.statement] * prior(c.operator, request.reference), (c,))
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


def _together(single: Iterable[_Candidate]) -> Iterator[_Candidate]:
    """Equal mistakes changed together."""
    groups: dict[tuple[str, str], list[_Candidate]] = {}
    for candidate in single:
        change = candidate.changes[0]
        if change.group:
            groups.setdefault((change.operator, change.group), []).append(candidate)
    for members in groups.values():
        if 1 < len(members) <= _MOST_LOOKED_AT:
            changes = tuple(m.changes[0] for m in members)
            yield _Candidate(0.9 * max(m.score for m in members), changes)


def _batches(candidates: Iterable[_Candidate]) -> Iterator[list[tuple[_Candidate, Proposal]]]:
    """Those that can be made, no text twice."""
    seen: set[tuple[tuple[int | None, str | None, str], ...]] = set()
    sizes = iter(_BATCHES)
    batch: list[tuple[_Candidate, Proposal]] = []
    size = next(sizes)
    for candidate in candidates:
        edits = candidate.edits()
        key = () if edits is None else tuple((e.cell, e.file, e.new_source) for e in edits)
        if edits and key not in seen:
            seen.add(key)
            batch.append((candidate, _proposal(candidate, edits)))
        if len(batch) == size:
            yield batch
            batch, size = [], next(sizes, 0)
        if len(seen) >= _MOST_TRIED:
            break
    if batch:
        yield batch


def _proposal(candidate: _Candidate, edits: Edits) -> Proposal:
    operator = candidate.operator
    safety = Safety.SAME_GRADIENTS if operator in _SAME_MEANING else Safety.CHANGES_MEANING
    code = " ".join(candidate.changes[0].code.split())
    code = code if len(code) <= _LONGEST else f"{code[: _LONGEST - 1]}…"
    return Proposal(f"repair_{operator}", edits, safety, {"code": code})


def _tried(batch: Sequence[tuple[_Candidate, Proposal]], request: Request) -> list[_Tried]:
    by_edits = {id(proposal.edits): candidate for candidate, proposal in batch}
    rewrites = verify([proposal for _, proposal in batch], request, keep_all=True)
    return [(by_edits[id(rewrite.edits)], rewrite) for rewrite in rewrites]


def _over(tried: Sequence[_Tried]) -> bool:
    """Whether nothing more will be learned: the time is over, the cells cannot be replayed."""
    return all(rewrite.outcome is Outcome.NOT_TRIED for _, rewrite in tried)


def _enough(found: Sequence[_Tried], request: Request) -> bool:
    """Whether one is verified or, where nothing can be, there is some choice."""
    if any(rewrite.outcome is Outcome.VERIFIED for _, rewrite in found):
        return True
    running = [(c, r) for c, r in found if r.outcome is Outcome.RUNS]
    reasons = {rewrite.reason.values.get("why", "") for _, rewrite in running}
    if request.reference is not Reference.NONE and not reasons & _NO_REFERENCE:
        return False
    return sum(_says_something(c, r, request) for c, r in running) >= _CHOICE


def _worth_showing(found: Sequence[_Tried], finding: Finding, request: Request) -> list[_Tried]:
    """Those that run and may repair: not such as only leave out the statement that failed."""
    failed = finding.event(What.FAILED)
    place = None if failed is None else failed.place
    kept = []
    for candidate, rewrite in found:
        if _says_something(candidate, rewrite, request):
            edited = apply(request.program, rewrite.edits)
            if place is None or (edited is not None and edited.place(place) is not None):
                kept.append((candidate, rewrite))
    return kept


def _weighed(found: Sequence[_Tried], request: Request) -> list[_Tried]:
    """Of those that run, the ones that cut their losses the least from the leaves used for them."""
    running = _by_score(found)[:_WEIGHED]
    if not running or request.seconds <= 0:
        return []
    against = evidence_against([Proposal(r.fix, r.edits) for _, r in running], request)
    least = min((_DOUBTFUL - 1, *(n for n in against if n is not None)))
    return [pair for pair, n in zip(running, against, strict=True) if n == least]


def _by_score(found: Sequence[_Tried]) -> list[_Tried]:
    return sorted(found, key=lambda pair: -pair[0].score)


def _chosen(found: Sequence[_Tried]) -> tuple[Rewrite, ...]:
    """Verified ones; where none is, those that run; an operator once."""
    ordered = [r for _, r in _by_score(found)]
    verified = [r for r in ordered if r.outcome is Outcome.VERIFIED]
    chosen: dict[str, Rewrite] = {}
    for rewrite in verified or ordered:
        chosen.setdefault(rewrite.fix, rewrite)
    return tuple(chosen.values())[:_MOST_SHOWN]


def _says_something(candidate: _Candidate, rewrite: Rewrite, request: Request) -> bool:
    """A silent program runs whatever one changes: there a gradient must have come that was not."""
    if rewrite.outcome is not Outcome.RUNS:
        return False
    if not shown_unverified(candidate.operator, request.reference):
        return False
    return request.kind is not Kind.SILENT or rewrite.reason.key == "reached"
