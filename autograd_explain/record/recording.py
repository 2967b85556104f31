"""What a watched cell did to its tensors: seen while it ran, told afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..incident import Incident
    from ..inspect.history import History, Moment
    from ..program import Program


@dataclass(frozen=True)
class Signal:
    """Something wrong that raised nothing; `name` is what knowledge entries list in PATTERNS."""

    name: str
    moments: Mapping[str, tuple[Moment, ...]] = field(default_factory=dict)
    evidence: Mapping[str, Any] = field(default_factory=dict)


class Recording:
    """The log of a session's watched cells; one Recording may span several of them."""

    limits: tuple[str, ...] = ()

    def covers(self, incident: Incident) -> bool:
        """Whether the operations behind this failure were watched."""
        return False

    def history(self, program: Program) -> History:
        """The past as it was observed."""
        raise NotImplementedError

    def signals(self) -> tuple[Signal, ...]:
        """What went wrong silently, as far as it was seen."""
        return ()


@contextmanager
def watch(
    program: Program, cell: int | None, recording: Recording | None = None
) -> Iterator[Recording]:
    """Record while the body runs, continuing `recording` where one is given."""
    yield recording if recording is not None else Recording()
