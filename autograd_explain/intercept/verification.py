"""Trying a report's rewrites: at once, or when the cell that warned has ended."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..incident import Incident
from ..model import Finding, Reason, Rewrite, What
from ..program import Program
from ..program_index import index_of
from .cells import Run
from .guard import guarded

if TYPE_CHECKING:
    from ..rewrite.engine.proposal import Proposal
    from ..verification import (
        Checkpoint,
        GradientDifference,
        IgnoredGradient,
        Loaded,
        NonFinite,
        Request,
        SeveredValue,
    )
    from .progress import Progress

_NAME = re.compile(r"[^\W\d]\w*")


_TIMES = 2  #: the program as it is beside its reference, then the edited ones; modules are loaded


#: Shares of the time. Most cells that are asked whether values left the graph are right.
_HALF, _LITTLE = 0.5, 0.15


class Verifier:
    """Tries proposals from the state before the watched cell, and searches where none is of use."""

    def __init__(
        self,
        checkpoint: Checkpoint | None,
        seconds: float,
        runs: Sequence[Run],
        progress: Progress | None = None,
        loaded: Loaded | None = None,
        searches: bool = True,
        of: int = 1,
    ) -> None:
        """`loaded` is what the program has loaded since the checkpoint, where that is known.
        A finding's own rewrites may take all the time; what is asked before, and the search after
        them, its share: one of `of`."""
        self._searches = searches
        self._of = of
        self._checkpoint = checkpoint
        self.seconds = seconds
        self._runs = runs
        self._progress = progress
        self._loaded = loaded

    def telling(self, progress: Progress) -> Verifier:
        """The same, which tells of every outcome as it comes."""
        return self._but(progress=progress)

    def of_proposals(self) -> Verifier:
        """The same, which searches for nothing."""
        return self._but(searches=False)

    def _but(self, **other: Any) -> Verifier:
        now = {"progress": self._progress, "searches": self._searches}
        return Verifier(
            *(self._checkpoint, self.seconds, self._runs),
            **{**now, **other},
            loaded=self._loaded,
            of=self._of,
        )

    def __call__(
        self, incident: Incident, finding: Finding, proposals: tuple[Proposal, ...]
    ) -> tuple[Rewrite, ...]:
        from ..repair import search
        from ..verification import told_apart, verify_all

        overwritten = finding.event(What.CHANGED) is not None
        request = replace(
            self._request(incident, overwritten),
            awaited=finding.awaited,
            awaits_steps=finding.awaits_steps,
        )
        if self._progress is not None:
            request = replace(request, progress=self._progress.tried)
        started = time.monotonic()
        rewrites, failed = verify_all(proposals, request)
        if self._progress is not None:
            request = replace(request, progress=self._progress.searched)
        left = request.seconds / self._of - (time.monotonic() - started)
        if self._searches:
            with guarded("search"):
                rewrites = search(finding, replace(request, seconds=left), rewrites, failed)
        if not rewrites and not told_apart(incident.program, request.cell):
            return Untried("unnumbered")(incident, finding, proposals)
        source = incident.program.cell(request.cell)
        return own_first(rewrites, "" if source is None else source.text)

    def differences(self, incident: Incident) -> tuple[GradientDifference, ...] | None:
        """How the gradients of a program that went wrong silently differ from the intended ones;
        None where that is not known."""
        from ..verification import reference_gradients

        with self._share(incident, _HALF, overwritten=True) as request:
            return reference_gradients(request)

    def origin_of_nonfinite(self, incident: Incident) -> NonFinite | None:
        """Where a gradient that is not finite comes from, as far as a run of the cell shows it."""
        from ..verification import origin_of_nonfinite

        with self._share(incident, _HALF) as request:
            return origin_of_nonfinite(request)

    def evidence_of(self, incident: Incident) -> dict[str, Any]:
        """What another run of the cell tells of a failure, where its message is not enough."""
        from ..verification import is_of_anomaly_mode

        if not is_of_anomaly_mode(incident.message):
            return {}
        return {"origin": self.origin_of_nonfinite(incident)}

    def severed_values(self, incident: Incident) -> tuple[SeveredValue, ...] | None:
        """What losses of the cell depend on and its gradients lack; None where nothing was run."""
        from ..verification import severed_values

        with self._share(incident, _LITTLE) as request:
            stops = incident.evidence.get("stops", frozenset())
            rounds = incident.evidence.get("rounds", 0)
            return severed_values(replace(request, stops=stops, rounds=rounds))

    def ignored_gradients(self, incident: Incident) -> tuple[IgnoredGradient, ...] | None:
        """Which gradients of the cell's custom Functions do not depend on what comes in; None where
        nothing was run."""
        from ..verification import ignored_gradients

        with self._share(incident, _LITTLE) as request:
            return ignored_gradients(request)

    @contextmanager
    def _share(
        self, incident: Incident, share: float, overwritten: bool = False
    ) -> Iterator[Request]:
        """A question that may take a share of the time; what it takes is the rewrites' no more."""
        request = self._request(incident, overwritten)
        started = time.monotonic()
        try:
            yield replace(request, seconds=share * request.seconds / self._of)
        finally:
            self.seconds = max(0.0, self.seconds - (time.monotonic() - started))

    def _load(self) -> None:
        """Have the copy load what the program has loaded, before its time is shared out."""
        if self._checkpoint is not None and self._loaded is not None:
            started = time.monotonic()
            self._checkpoint.load(self._loaded, self.seconds)
            self.seconds = max(0.0, self.seconds - (time.monotonic() - started))

    def _request(self, incident: Incident, overwritten: bool) -> Request:
        from ..verification import SCRIPT, Request, reference_for

        self._load()
        earlier = [r for r in self._runs if r.number != incident.cell]
        return Request(
            program=incident.program,
            cell=SCRIPT if incident.cell is None else incident.cell,
            message=incident.message,
            kind=incident.kind,
            reference=reference_for(incident.kind, incident.message, overwritten, incident.signal),
            checkpoint=self._checkpoint,
            failed=frozenset(r.number for r in earlier if r.success is False),
            durations={r.number: r.seconds for r in self._runs if r.seconds is not None},
            seconds=self.seconds,
        )


def own_first(rewrites: Iterable[Rewrite], cell: str) -> tuple[Rewrite, ...]:
    """The rewrites; of the tensors that were compared, those that the cell names come first, and
    the report names no others."""
    named = set(_NAME.findall(cell))
    return tuple(_own_first(rewrite, named) for rewrite in rewrites)


def _own_first(rewrite: Rewrite, named: set[str]) -> Rewrite:
    if rewrite.comparison is None or rewrite.reason.key != "agrees":
        return rewrite
    from ..render.view import name_list

    compared = rewrite.comparison.compared
    own = [n for n in compared if n.replace("[", ".").split(".")[0] in named]
    ordered = (*own, *(n for n in compared if n not in own))
    values = {**rewrite.reason.values, "names": name_list(ordered, len(own))}
    return replace(
        rewrite,
        comparison=replace(rewrite.comparison, compared=ordered),
        reason=replace(rewrite.reason, values=values),
    )


@dataclass(frozen=True)
class Untried:
    """Tries nothing; its rewrites say why, a key of `render.reasons`."""

    reason: str

    def __call__(
        self, incident: Incident, finding: Finding, proposals: tuple[Proposal, ...]
    ) -> tuple[Rewrite, ...]:
        why = Reason(self.reason)
        return tuple(Rewrite(p.fix, p.edits, p.safety, p.facts, reason=why) for p in proposals)


class _Kept:
    """Keeps a report's proposals; holds nothing live."""

    def __init__(self) -> None:
        self._kept: tuple[Incident, Finding, tuple[Proposal, ...]] | None = None

    def keep(self, incident: Incident, finding: Finding, proposals: tuple[Proposal, ...]) -> None:
        told = Incident(incident.kind, incident.message, incident.program, {}, cell=incident.cell)
        self._kept = (told, finding, proposals)

    def settle(self, verifier: Verifier | Untried) -> tuple[Rewrite, ...]:
        """The same proposals, tried now."""
        return () if self._kept is None else verifier(*self._kept)


class DeferredVerification(_Kept):
    """Keeps a warning's proposals until its cell has ended."""

    def __call__(
        self, incident: Incident, finding: Finding, proposals: tuple[Proposal, ...]
    ) -> tuple[Rewrite, ...]:
        self.keep(incident, finding, proposals)
        return Untried("other_report")(incident, finding, proposals)


class AwaitedVerification(_Kept):
    """Keeps an error's proposals while its report is shown without their outcomes."""

    def __init__(self, why: Reason) -> None:
        super().__init__()
        self._why = why

    @property
    def asked(self) -> bool:
        """Whether there is something to try."""
        return self._kept is not None

    def __call__(
        self, incident: Incident, finding: Finding, proposals: tuple[Proposal, ...]
    ) -> tuple[Rewrite, ...]:
        self._kept = (incident, finding, proposals)  # live: `settle` follows at once
        return tuple(
            Rewrite(p.fix, p.edits, p.safety, p.facts, reason=self._why) for p in proposals
        )


class LaterVerification(_Kept):
    """Keeps the proposals of a report that is shown before they are tried."""

    def __call__(
        self, incident: Incident, finding: Finding, proposals: tuple[Proposal, ...]
    ) -> None:
        self.keep(incident, finding, proposals)


def is_quick(program: Program, runs: Sequence[Run], seconds: float) -> bool:
    """Whether there is time to run all cells again, twice.  Of the cell that
    loaded the extension it is not known how long it took, nor of those before it."""
    seen = {run.number for run in runs}
    unseen = {source.cell for source in index_of(program).runs} - seen
    return not unseen and _TIMES * sum(run.seconds or 0.0 for run in runs) <= seconds
