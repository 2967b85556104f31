"""What is sent to the process that tries the rewrites, and what it sends back."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ..model import Comparison, Edit, Kind, Outcome, Reason
from .cells import Cell

#: The index that stands for the original program.
ORIGINAL = -1


@dataclass(frozen=True)
class Trial:
    """A proposal to try: its place in the caller's list and its edits."""

    index: int
    edits: tuple[Edit, ...]


@dataclass(frozen=True)
class Plan:
    """A verification from one state.

    `fresh` starts from an empty session in which `prefix` runs first, else the state is there.
    `shared` runs the prefix once for all replays.  `gradients` also asks which gradients of the
    original program differ from the reference; `against` asks nothing of the trials but what
    speaks against them.  `device`: the session uses one.
    """

    cells: tuple[Cell, ...]
    trials: tuple[Trial, ...]
    reference: Reference
    kind: Kind
    message: str
    seconds: float
    megabytes: int
    prefix: tuple[Cell, ...] = ()
    fresh: bool = False
    shared: bool = True
    failed: frozenset[int] = frozenset()
    gradients: bool = False
    awaited: tuple[str, ...] = ()
    against: bool = False
    device: bool = False


@dataclass(frozen=True)
class GradientDifference:
    """A gradient of the original program that is not what the reference says.

    `plain` and `reference` are the two values as short text ("1", "[1, 0.5, …]", "None");
    `error` is the largest error as a multiple of what rounding may make (inf: not comparable).
    """

    name: str
    plain: str
    reference: str
    error: float


@dataclass(frozen=True)
class Verdict:
    """What a trial showed.  `retry` says that another state may show more; `index` ORIGINAL is the
    original program, whose `gradients` were asked for.  `against` is how much speaks against it:
    1 where a backward misses a leaf that was used before it, or where a gradient that the original
    had, or the loss at which it failed, is another; 2 where a loss depends on a leaf that it
    misses, where a backward is left out that others have, or where an earlier loss is another."""

    index: int
    outcome: Outcome
    reason: Reason
    comparison: Comparison | None = None
    retry: bool = False
    warns: bool = False
    gradients: tuple[GradientDifference, ...] = ()
    against: int = 0


class Reference(str, Enum):
    """Which run of the original program yields the gradients that were meant.

    SAVED_VALUES: every backward uses the values as they were when the forward pass saved them.
    It fits version errors and silent overwrites.
    RETAINED_GRAPH: no graph is freed.  It fits a second backward, as long as nothing was
    overwritten in between (then the rewrite has no reference).
    LENIENT: what torch refuses is done where only one gradient can be meant (leaf writes, writes
    into views, numpy, non-leaf tensors in an optimizer).
    RETAINED_GRADIENTS: intermediate tensors keep their `.grad`.
    NONE: nothing tells what was meant (cut graphs).
    """

    SAVED_VALUES = "saved_values"
    RETAINED_GRAPH = "retained_graph"
    LENIENT = "lenient"
    RETAINED_GRADIENTS = "retained_gradients"
    NONE = "none"
