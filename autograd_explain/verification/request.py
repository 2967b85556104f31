"""What is to be verified, and with which reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..model import Kind
from ..program import Program
from .plan import Reference

if TYPE_CHECKING:
    from .checkpoint import Checkpoint
    from .plan import Verdict


@dataclass(frozen=True, eq=False)
class Request:
    """A failure whose rewrites are to be tried.

    `program` holds every cell that ran, `cell` is the number of the one that failed (or, for a
    silent finding, that went wrong) and `message` what torch said (`str(exception)`; the text
    of the warning; "" for silent).  `failed` are the earlier cells that had ended with an error,
    `durations` the seconds that cells took, where known: they save hopeless replays.
    `checkpoint` is the one taken before the failing cell, if any.  `seconds` and `megabytes`
    bound the whole verification and the memory growth of one replay.  `awaited` are names of
    tensors that have to get a gradient, with `awaits_steps` one that an optimizer steps with.
    `stops` are files and lines at which a gradient is stopped as written, which may be meant;
    so many `rounds` come before the last of what is asked about first runs.
    `unknown` leaves kind, message and reference to what the program's own run does.  `progress` is
    told every verdict as it comes; a later one on the same rewrite may say more.
    """

    program: Program
    cell: int
    message: str = ""
    kind: Kind = Kind.ERROR
    reference: Reference = Reference.NONE
    checkpoint: Checkpoint | None = None
    failed: frozenset[int] = frozenset()
    durations: Mapping[int, float] = field(default_factory=dict)
    seconds: float = 20.0
    megabytes: int = 2048
    awaited: tuple[str, ...] = ()
    awaits_steps: bool = False
    stops: frozenset[tuple[str, int]] = frozenset()
    rounds: int = 0
    unknown: bool = False
    progress: Callable[[Verdict], None] | None = None
