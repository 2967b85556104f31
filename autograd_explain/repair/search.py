"""The search: changes best first, tried in groups until one is verified or the time is over."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from ..model import Finding, Kind, Outcome, Rewrite, Safety, What, lines_of
from ..rewrite import Proposal
from ..rewrite.engine.edits import apply
from ..verification import Reference, Request, evidence_against, verify
from .candidates import Candidate, candidates
from .moved import BOTH, Moved, moved, second_edits

_MOST_SHOWN = 3
_MOST_TRIED = 240
_BATCHES = (16, 32, 64, 128)
_CHOICE = 4  #: that run, to choose from where nothing can be verified
#: Why there is no reference for any rewrite of the program.
_NO_REFERENCE = frozenset(
    "older_graph overwritten_earlier reference_failed recomputed too_large nondeterministic "
    "overwritten_between".split()
)
_WEIGHED = 12  #: of those, how many are looked at more closely
_DOUBTFUL = 2  #: so much speaks against a rewrite that others are looked for
_STARVES = 3  #: or against one that is meant to differ
_RUN = (Outcome.RUNS, Outcome.DIFFERS)
_SHARE = 0.8  #: of the time, for finding them
#: What running a silent program says where a gradient came that was not there.
_MENDED = frozenset({"reached", "stepped", "finite", "nonzero"})
_HALVES = 2  #: edits that moved the failure, gone on from after each batch


_Tried = tuple[Candidate, Rewrite]
_Rewrites = tuple[Rewrite, ...]
_Batch = list[tuple[Candidate, Proposal]]


def search(
    finding: Finding,
    request: Request,
    known: tuple[Rewrite, ...],
    failed: Sequence[Rewrite] = (),
) -> tuple[Rewrite, ...]:
    """The rewrites that a cause proposed, and further ones where none of those is of use.

    `failed` are others of the cause's that stop with an error: where that is another one than the
    program's, they may be half of a repair.
    """
    if not _searchable(request) or _is_verified(known) or _interrupted(known):
        return tuple(known)
    start = time.monotonic()
    doubtful: Sequence[Rewrite] = ()
    found: list[_Tried] = []
    with suppress(KeyboardInterrupt):
        known, doubtful = _divided(known, request)
        left = request.seconds - (time.monotonic() - start)
        if left > 0 and not any(rewrite.outcome in _RUN for rewrite in known):
            found = _found(finding, replace(request, seconds=left), failed)
    return _ordered(known, _chosen(found), doubtful)


def _searchable(request: Request) -> bool:
    """Where a program ran to its end, something has to tell a repair from any other edit."""
    if request.kind is Kind.ERROR:
        return True
    tells = request.reference is not Reference.NONE or bool(request.awaited)
    return tells and request.kind is not Kind.NOTE


def _is_verified(rewrites: Iterable[Rewrite]) -> bool:
    return any(rewrite.outcome is Outcome.VERIFIED for rewrite in rewrites)


def _divided(known: Sequence[Rewrite], request: Request) -> tuple[_Rewrites, _Rewrites]:
    """What the cause proposed, without those that run and of which evidence says that they are
    no repair; and those.  What leaves the meaning as it is cuts nothing off itself, and what is
    meant to differ may cut, but no leaf off from all."""
    asked = [rewrite for rewrite in known if _is_open(rewrite)]
    if not asked or request.seconds <= 0:
        return tuple(known), ()
    found = evidence_against([Proposal(r.fix, r.edits) for r in asked], request)
    against = zip(asked, found, strict=True)
    most = {Outcome.RUNS: _DOUBTFUL, Outcome.DIFFERS: _STARVES}
    doubtful = tuple(r for r, much in against if much is not None and much >= most[r.outcome])
    return tuple(r for r in known if r not in doubtful), doubtful


def _is_open(rewrite: Rewrite) -> bool:
    """Whether evidence may speak against it."""
    if rewrite.outcome is Outcome.DIFFERS:
        return rewrite.reason.key == "differs"
    return rewrite.outcome is Outcome.RUNS and rewrite.safety is Safety.CHANGES_MEANING


def _interrupted(rewrites: Iterable[Rewrite]) -> bool:
    return any(rewrite.reason.key == "interrupted" for rewrite in rewrites)


def _found(finding: Finding, request: Request, failed: Sequence[Rewrite]) -> list[_Tried]:
    """The candidates that were tried; where none is verified, only those that say something."""
    start = time.monotonic()
    end = start + _SHARE * request.seconds
    found: list[_Tried] = []
    halves = _moved(((1.0, r) for r in failed), finding, request)
    for batch in _in_turns(_batches(candidates(finding, request), end), halves, request):
        left = end - time.monotonic()
        tried = _tried(batch, replace(request, seconds=left)) if left > 0 else []
        found += tried
        # Pairs are not gone on from: of three edits hardly any is a repair.
        single = ((c.score, r) for c, r in tried if r.fix != BOTH)
        halves += _moved(single, finding, request)
        if _interrupted(rewrite for _, rewrite in tried):
            return []
        if _enough(found, request) or _over(tried, request):
            break
    if _is_verified(rewrite for _, rewrite in found):
        return found
    found = _worth_showing(found, finding, request)
    left = start + request.seconds - time.monotonic()
    return _weighed(found, replace(request, seconds=left))


def _ordered(known: _Rewrites, found: _Rewrites, doubtful: Sequence[Rewrite]) -> _Rewrites:
    """Verified ones first, then what the cause proposed, unless evidence speaks against it, or it
    could not be run and others were."""
    verified = [r for r in found if r.outcome is Outcome.VERIFIED]
    rest = [r for r in found if r.outcome is not Outcome.VERIFIED]
    untried = [r for r in known if r.outcome is Outcome.NOT_TRIED] if rest else []
    known = tuple(r for r in known if r not in untried)
    ordered = (*verified, *known, *rest, *untried, *doubtful)
    return ordered[: max(_MOST_SHOWN, len(known) + len(untried) + len(doubtful))]


def _batches(found: Iterable[Candidate], end: float) -> Iterator[_Batch]:
    """Those that can be made until the time `end`, no text twice."""
    seen: set[tuple[tuple[int | None, str | None, str], ...]] = set()
    sizes = iter(_BATCHES)
    batch: _Batch = []
    size = next(sizes)
    for candidate in found:
        proposal = candidate.proposal()
        edits = () if proposal is None else proposal.edits
        key = tuple((e.cell, e.file, e.new_source) for e in edits)
        if proposal is not None and key not in seen:
            seen.add(key)
            batch.append((candidate, proposal))
        if len(batch) == size:
            yield batch
            batch, size = [], next(sizes, 0)
        if len(seen) >= _MOST_TRIED or time.monotonic() > end:
            break
    if batch:
        yield batch


def _moved(
    found: Iterable[tuple[float, Rewrite]], finding: Finding, request: Request
) -> list[Moved]:
    """The edits after which the program fails otherwise."""
    halves = (moved(score, rewrite, finding, request) for score, rewrite in found)
    return [half for half in halves if half is not None]


def _in_turns(single: Iterator[_Batch], halves: list[Moved], request: Request) -> Iterator[_Batch]:
    """Single edits, and between their batches pairs with those that moved the failure."""
    yield from _pairs(halves, request)
    for batch in single:
        yield batch
        yield from _pairs(halves, request)


def _pairs(halves: list[Moved], request: Request) -> Iterator[_Batch]:
    """What may repair together with the next ones of the halves, which are taken out: those that
    moved the failure furthest, a batch for each."""
    halves.sort(key=lambda half: (-half.further, -half.score))
    taken, halves[:] = halves[:_HALVES], halves[_HALVES:]
    for half in taken:
        if batch := list(second_edits(half, request)):
            yield batch


def _tried(batch: _Batch, request: Request) -> list[_Tried]:
    by_edits = {id(proposal.edits): candidate for candidate, proposal in batch}
    rewrites = verify([proposal for _, proposal in batch], request, keep_all=True)
    return [(by_edits[id(rewrite.edits)], rewrite) for rewrite in rewrites]


def _over(tried: Sequence[_Tried], request: Request) -> bool:
    """Whether nothing more will be learned: the time is over, or no cell can be replayed."""
    if request.checkpoint is not None and request.checkpoint.stranded is not None:
        return any(rewrite.reason.key == "budget" for _, rewrite in tried)
    return all(rewrite.outcome is Outcome.NOT_TRIED for _, rewrite in tried)


def _enough(found: Sequence[_Tried], request: Request) -> bool:
    """Whether one is verified or, where nothing can be, there is some choice."""
    if _is_verified(rewrite for _, rewrite in found):
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
            stays = place is None or (edited is not None and edited.place(place) is not None)
            stays = stays or request.kind is Kind.SILENT  # a gradient has come, so it is there
            lines = [(lines_of(e.old_source), lines_of(e.new_source)) for e in rewrite.edits]
            if stays or sum(len(new) - len(old) for old, new in lines) >= 0:
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
    """The likeliest first, those last whose losses do not rise as their gradients say."""

    def order(pair: _Tried) -> tuple[bool, float]:
        return pair[1].reason.values.get("why") == "finite_differences", -pair[0].score

    return sorted(found, key=order)


def _chosen(found: Sequence[_Tried]) -> tuple[Rewrite, ...]:
    """Verified ones; where none is, those that run; an operator once."""
    ordered = [r for _, r in _by_score(found)]
    verified = [r for r in ordered if r.outcome is Outcome.VERIFIED]
    chosen: dict[str, Rewrite] = {}
    for rewrite in verified or ordered:
        chosen.setdefault(rewrite.fix, rewrite)
    return tuple(chosen.values())[:_MOST_SHOWN]


def _says_something(candidate: Candidate, rewrite: Rewrite, request: Request) -> bool:
    """A silent program runs whatever one changes: there a gradient must have come that was not."""
    if rewrite.outcome is Outcome.DIFFERS:
        return candidate.may_differ
    if rewrite.outcome is not Outcome.RUNS or not candidate.shown:
        return False
    return request.kind is not Kind.SILENT or rewrite.reason.key in _MENDED
