"""Trying a report's rewrites: at once, or when the cell that warned has ended."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..incident import Incident
from ..model import Finding, Reason, Rewrite, What
from .cells import Run
from .guard import guarded

if TYPE_CHECKING:
    from ..rewrite.engine.proposal import Proposal
    from ..verify import Checkpoint, GradientDifference, Request


class Verifier:
    """Tries proposals from the state before the watched cell, and searches where none is of use."""

    def __init__(self, checkpoint: Checkpoint | None, seconds: float, runs: Sequence[Run]) -> None:
        self._checkpoint = checkpoint
        self._seconds = seconds
        self._runs = runs

    def __call__(
        self, incident: Incident, finding: Finding, proposals: tuple[Proposal, ...]
    ) -> tuple[Rewrite, ...]:
        from ..repair import search
        from ..verify import verify

        overwritten = finding.event(What.CHANGED) is not None
        request = replace(self._request(incident, overwritten), awaited=finding.awaited)
        started = time.monotonic()
        rewrites = verify(proposals, request)
        left = request.seconds - (time.monotonic() - started)
        with guarded("search"):
            return search(finding, replace(request, seconds=left), rewrites)
        return rewrites

    def differences(self, incident: Incident) -> tuple[GradientDifference, ...]:
        """How the gradients of an overwritten value's program differ from the intended ones."""
        from ..verify import reference_gradients

        return reference_gradients(self._request(incident, overwritten=True))

    def _request(self, incident: Incident, overwritten: bool) -> Request:
        from ..verify import SCRIPT, Request, reference_for

        earlier = [r for r in self._runs if r.number != incident.cell]
        return Request(
            program=incident.program,
            cell=SCRIPT if incident.cell is None else incident.cell,
            message=incident.message,
            kind=incident.kind,
            reference=reference_for(incident.kind, incident.message, overwritten),
            checkpoint=self._checkpoint,
            failed=frozenset(r.number for r in earlier if r.success is False),
            durations={r.number: r.seconds for r in self._runs if r.seconds is not None},
            seconds=self._seconds,
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


class DeferredVerification:
    """Keeps a warning's proposals until its cell has ended; holds nothing live."""

    def __init__(self) -> None:
        self._kept: tuple[Incident, Finding, tuple[Proposal, ...]] | None = None

    def __call__(
        self, incident: Incident, finding: Finding, proposals: tuple[Proposal, ...]
    ) -> tuple[Rewrite, ...]:
        told = Incident(incident.kind, incident.message, incident.program, {}, cell=incident.cell)
        self._kept = (told, finding, proposals)
        return Untried("other_report")(incident, finding, proposals)

    def settle(self, verifier: Verifier) -> tuple[Rewrite, ...]:
        """The same proposals, tried now."""
        return () if self._kept is None else verifier(*self._kept)
