"""A watched cell: the recorder and the checkpoint are set up before it, and used when it failed.

`%autograd_check on` enters before each cell, `%%autograd_check` at the cell's first line; both
leave when the cell ends.  The recorder's function mode is torch's thread-local one, not a context
variable: a cell with `await` starts and ends in one thread, so this holds there too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from ..incident import Incident
from ..model import Finding, Reason, Rewrite, What
from ..program import Program
from ..settings import Options
from .cells import Run
from .guard import guarded
from .traceback import tidied

if TYPE_CHECKING:
    from ..record import Recording, Signal
    from ..rewrite.proposal import Proposal
    from ..verify import Checkpoint, GradientDifference, Request


@dataclass(frozen=True)
class Choice:
    """What was asked for with a check; None leaves the setting as it is."""

    verify: bool | None = None
    budget: float | None = None
    language: str | None = None
    here: bool = False  #: asked for in the cell itself
    automatic: bool = False  #: nobody asked: the run after a failure


class Check:
    """One watched cell."""

    def __init__(self, choice: Choice, shell: Any) -> None:
        self.choice = choice
        self._shell = shell
        self.recording: Recording | None = None
        self._since = 0
        self._checkpoint: Checkpoint | None = None
        self._stack = ExitStack()

    def take_checkpoint(self) -> None:
        """Remember the session as it is before the cell."""
        with guarded("checkpoint"):
            from ..verify import Checkpoint

            self._checkpoint = Checkpoint.take(self._shell.user_ns)

    def enter(self, program: Program, cell: int | None, earlier: Recording | None) -> None:
        """Begin to record, continuing the session's earlier recording."""
        with guarded("record"):
            from ..record import watch

            self._stack.enter_context(tidied(self._shell))
            self.recording = self._stack.enter_context(watch(program, cell, earlier))
            self._since = self.recording.log.clock

    def leave(self) -> None:
        """The cell has ended: stop recording."""
        with guarded("record"):
            self._stack.close()

    def discard(self) -> None:
        """Everything is told: drop the checkpoint."""
        with guarded("checkpoint"):
            if self._checkpoint is not None:
                self._checkpoint.discard()

    def signals(self) -> tuple[tuple[Signal, ...], tuple[Signal, ...]]:
        """What went wrong without an exception, and what the program may well mean."""
        with guarded("record"):
            if self.recording is not None:
                return self.recording.signals(), self.recording.notes()
        return (), ()

    def watched(self) -> tuple[int, int] | None:
        """How many writes and graph nodes the cell made, or None where it was not recorded."""
        with guarded("record"):
            if self.recording is not None:
                log = self.recording.log
                writes = _later(log.wrote, 0, self._since) + _later(log.stepped, 0, self._since)
                return writes, _later(log.made, 3, self._since)
        return None

    def notes(self) -> tuple[Reason, ...]:
        """Where the recorder could not look."""
        limits: Iterable[str] = () if self.recording is None else self.recording.limits
        return tuple(Reason(f"limit_{limit}") for limit in limits)

    def verifier(self, options: Options, runs: Sequence[Run]) -> Verifier | None:
        return Verifier(self._checkpoint, options.budget, runs) if options.verify else None


class Verifier:
    """Tries proposals from the state before the watched cell."""

    def __init__(self, checkpoint: Checkpoint | None, seconds: float, runs: Sequence[Run]) -> None:
        self._checkpoint = checkpoint
        self._seconds = seconds
        self._runs = runs

    def __call__(
        self, incident: Incident, finding: Finding, proposals: tuple[Proposal, ...]
    ) -> tuple[Rewrite, ...]:
        from ..verify import verify

        overwritten = finding.event(What.CHANGED) is not None
        request = self._request(incident, overwritten)
        return verify(proposals, replace(request, awaited=finding.awaited))

    def differences(self, incident: Incident) -> tuple[GradientDifference, ...]:
        """How the gradients of an overwritten value's program differ from the intended ones."""
        from ..verify import reference_gradients

        return reference_gradients(self._request(incident, overwritten=True))

    def _request(self, incident: Incident, overwritten: bool) -> Request:
        from ..verify import Request, reference_for

        assert incident.cell is not None
        earlier = [r for r in self._runs if r.number != incident.cell]
        return Request(
            program=incident.program,
            cell=incident.cell,
            message=incident.message,
            kind=incident.kind,
            reference=reference_for(incident.kind, incident.message, overwritten),
            checkpoint=self._checkpoint,
            failed=frozenset(r.number for r in earlier if r.success is False),
            durations={r.number: r.seconds for r in self._runs if r.seconds is not None},
            seconds=self._seconds,
        )


class Postponed:
    """Keeps a warning's proposals until its cell has ended; holds nothing live."""

    def __init__(self) -> None:
        self._kept: tuple[Incident, Finding, tuple[Proposal, ...]] | None = None

    def __call__(
        self, incident: Incident, finding: Finding, proposals: tuple[Proposal, ...]
    ) -> tuple[Rewrite, ...]:
        told = Incident(incident.kind, incident.message, incident.program, {}, cell=incident.cell)
        self._kept = (told, finding, proposals)
        return tuple(Rewrite(p.fix, p.edits, p.safety, p.facts) for p in proposals)

    def settle(self, verifier: Verifier) -> tuple[Rewrite, ...]:
        """The same proposals, tried now."""
        return () if self._kept is None else verifier(*self._kept)


def _later(entries: Sequence[Any], clock_at: int, since: int) -> int:
    """How many entries of a log, oldest first, are younger than `since`."""
    younger = takewhile(lambda entry: _clock(entry, clock_at) > since, reversed(entries))
    return sum(1 for _ in younger)


def _clock(entry: Any, at: int) -> int:
    return int(entry[at] if isinstance(entry, tuple) else entry.clock)
