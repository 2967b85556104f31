"""A watched cell: the recorder and the checkpoint are set up before it, and used when it failed.

`%autograd_check on` enters before each cell, `%%autograd_check` at the cell's first line; both
leave when the cell ends.  The recorder's function mode is torch's thread-local one, not a context
variable: a cell with `await` starts and ends in one thread, so this holds there too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..model import Finding, Reason, Rewrite, What
from ..program import Program
from ..settings import Options
from .cells import Run
from .guard import guarded
from .traceback import tidied

if TYPE_CHECKING:
    from ..incident import Incident
    from ..record import Recording, Signal
    from ..rewrite.proposal import Proposal
    from ..verify import Checkpoint


@dataclass(frozen=True)
class Choice:
    """What was asked for with a check; None leaves the setting as it is."""

    verify: bool | None = None
    budget: float | None = None
    language: str | None = None
    automatic: bool = False  #: nobody asked: the run after a failure


class Check:
    """One watched cell."""

    def __init__(self, choice: Choice, shell: Any) -> None:
        self.choice = choice
        self._shell = shell
        self.recording: Recording | None = None
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

    def leave(self) -> None:
        """The cell has ended: stop recording."""
        with guarded("record"):
            self._stack.close()

    def discard(self) -> None:
        """Everything is told: drop the checkpoint."""
        with guarded("checkpoint"):
            if self._checkpoint is not None:
                self._checkpoint.discard()

    def signals(self) -> tuple[Signal, ...]:
        """What went wrong without an exception."""
        with guarded("record"):
            return () if self.recording is None else tuple(self.recording.signals())
        return ()

    def notes(self) -> tuple[Reason, ...]:
        """Where the recorder could not look."""
        limits: Iterable[str] = () if self.recording is None else self.recording.limits
        return tuple(Reason("not_watched", {"what": what}) for what in limits)

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
        from ..verify import Request, reference_for, verify

        assert incident.cell is not None
        overwritten = finding.event(What.CHANGED) is not None
        request = Request(
            program=incident.program,
            cell=incident.cell,
            message=incident.message,
            kind=incident.kind,
            reference=reference_for(incident.kind, incident.message, overwritten),
            checkpoint=self._checkpoint,
            failed=frozenset(r.number for r in self._runs if r.success is False),
            durations={r.number: r.seconds for r in self._runs if r.seconds is not None},
            seconds=self._seconds,
        )
        return verify(proposals, request)
