"""A watched cell: the recorder and the checkpoint are set up before it, and used when it failed.

`%autograd_check on` enters before each cell, `%%autograd_check` at the cell's first line; both
leave when the cell ends.  The recorder's function mode is torch's thread-local one, not a context
variable: a cell with `await` starts and ends in one thread, so this holds there too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Any, NamedTuple

from ..model import Reason
from ..program import Program
from ..settings import Options
from .cells import Run
from .guard import guarded
from .traceback import tidied
from .verification import Untried, Verifier

if TYPE_CHECKING:
    from ..record import Recording, Signal
    from ..verification import Checkpoint, Loaded
    from ..verification.replay import RunAgain


@dataclass(frozen=True)
class WatchOptions:
    """What was asked for with a check; None leaves the setting as it is."""

    verify: bool | None = None
    budget: float | None = None
    language: str | None = None
    here: bool = False  #: asked for in the cell itself
    automatic: bool = False  #: nobody asked: the run after a failure
    untried: str = "verify_off"  #: why nothing is tried where that is switched off


class Count(NamedTuple):
    """A number; where it is not complete there were more."""

    number: int
    complete: bool


class Watched(NamedTuple):
    """How many writes and graph nodes a cell made."""

    writes: Count
    nodes: Count

    @property
    def anything(self) -> bool:
        return self.writes.number > 0 or self.nodes.number > 0


class WatchedCell:
    """One watched cell."""

    def __init__(self, choice: WatchOptions, shell: Any) -> None:
        self.choice = choice
        self._shell = shell
        self.recording: Recording | None = None
        self._since = 0
        self._checkpoint: Checkpoint | None = None
        self._before: tuple[str, ...] = ()  #: the modules there were at the checkpoint
        self._loaded: Loaded | None = None
        self._stack = ExitStack()

    def take_checkpoint(self) -> None:
        """Remember the session as it is before the cell; after `enter`, as each page that is
        touched while there is a copy has to be copied, too."""
        with guarded("checkpoint"):
            from ..verification import Checkpoint, modules_now

            self._before = modules_now()
            self._checkpoint = Checkpoint.take(self._shell.user_ns, begin=self.leave)

    def take_checkpoint_inside(self, names: dict[str, Any], again: RunAgain) -> bool:
        """Remember the process as it is while it is recorded; `again` is what is to be run from
        there.  Whether that could be done."""
        with guarded("checkpoint"):
            from ..verification import Checkpoint

            self._checkpoint = Checkpoint.take(names, again, self.leave)
        return self._checkpoint is not None

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
        if self._checkpoint is not None:
            with guarded("checkpoint"):
                from ..verification import loaded_since

                self._loaded = loaded_since(self._before)

    def discard(self) -> None:
        """Everything is told: drop the checkpoint."""
        with guarded("checkpoint"):
            if self._checkpoint is not None:
                self._checkpoint.discard()

    def signals(self) -> tuple[tuple[Signal, ...], tuple[Signal, ...]] | None:
        """What went wrong without an exception, and what the program may well mean.

        None where that could not be judged.
        """
        with guarded("record"):
            if self.recording is not None:
                return self.recording.judged()
        return None

    def suspicions(self) -> tuple[Signal, ...]:
        """What may be wrong, and only another run of the cell can tell; where there is none, of
        what the source can tell, too."""
        with guarded("record"):
            if self.recording is not None:
                run = self._checkpoint is not None
                return self.recording.suspicions() if run else self.recording.piled_hooks()
        return ()

    def watched(self) -> Watched | None:
        """What the cell did, or None where it was not recorded."""
        with guarded("record"):
            if self.recording is not None:
                log = self.recording.log
                writes = [
                    _later(entries, 0, self._since) for entries in (log.write_rows, log.stepped)
                ]
                both = Count(sum(w.number for w in writes), all(w.complete for w in writes))
                return Watched(both, _later(log.made, 3, self._since))
        return None

    def blind_spots(self) -> tuple[str, ...]:
        """Where the recorder could not look in this cell, as keys."""
        with guarded("record"):
            if self.recording is not None:
                return self.recording.blind_spots
        return ()

    def notes(self) -> tuple[Reason, ...]:
        """Where the recorder could not look."""
        limits: Iterable[str] = () if self.recording is None else self.recording.limits
        return tuple(Reason(f"limit_{limit}") for limit in limits)

    def verifier(self, options: Options, runs: Sequence[Run], of: int = 1) -> Verifier | Untried:
        """What tries the rewrites of the next one of so many findings."""
        if not options.verify:
            return Untried(self.choice.untried)
        if self._checkpoint is not None and self._loaded is not None:
            self._checkpoint.begin_to_load(self._loaded)  # while the finding is looked into
        return Verifier(self._checkpoint, options.budget, runs, loaded=self._loaded, of=of)


def _later(entries: deque[Any], clock_at: int, since: int) -> Count:
    """How many entries of a log, oldest first, are younger than `since`: at least, where the log
    was too short for them."""
    younger = takewhile(lambda entry: _clock(entry, clock_at) > since, reversed(entries))
    number = sum(1 for _ in younger)
    return Count(number, number != entries.maxlen)


def _clock(entry: Any, at: int) -> int:
    return int(entry[at] if isinstance(entry, tuple) else entry.clock)
