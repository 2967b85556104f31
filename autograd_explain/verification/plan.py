"""What is sent to the process that tries the rewrites, and what it sends back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
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
class Loaded:
    """Modules of libraries that the program has loaded, in the order in which it began to, and the
    search path and the environment that it had then; `device` as in Plan."""

    modules: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    device: bool = False


@dataclass(frozen=True)
class Plan:
    """A verification from one state.

    `fresh` starts from an empty session in which `prefix` runs first, else the state is there.
    `shared` runs the prefix once for all replays.  `gradients` also asks which gradients of the
    original program differ from the reference; `against` asks nothing of the trials but what
    speaks against them.  `device`: the session uses one.  `nonfinite` asks only where the numbers
    of the original stop being finite, `severed` which values its gradients lack (`stops` are the
    files and lines of written stops that it looks at, `rounds` how many come before the last of
    what it looks at), `ignored` which gradients do not depend on what comes in; `was_nonfinite` and
    `was_zero` are awaited tensors whose gradient is not finite, or 0.
    `earlier`: the cells that ran before the state was copied; edits of them and of files give the
    functions that live other code, and the state stays the one that they made.
    `unknown`: whether the original fails, and with what, is what its own run tells; kind, message
    and reference follow from that.  Where it does not fail, its gradients are the reference, and
    nothing says that they are right.  `hiding`: files that the session has made since the state
    of the replays are not there.
    """

    cells: tuple[Cell, ...]
    trials: tuple[Trial, ...]
    reference: Reference
    kind: Kind
    message: str
    seconds: float
    megabytes: int
    prefix: tuple[Cell, ...] = ()
    earlier: tuple[Cell, ...] | None = None
    fresh: bool = False
    shared: bool = True
    failed: frozenset[int] = frozenset()
    gradients: bool = False
    awaited: tuple[str, ...] = ()
    awaits_steps: bool = False
    against: bool = False
    device: bool = False
    nonfinite: bool = False
    severed: bool = False
    stops: frozenset[tuple[str, int]] = frozenset()
    rounds: int = 0
    ignored: bool = False
    was_nonfinite: tuple[str, ...] = ()
    was_zero: tuple[str, ...] = ()
    unknown: bool = False
    hiding: bool = True


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
    misses, where a backward is left out that others have, or where an earlier loss is another;
    3 where fewer leaves get a gradient than had one before the failure."""

    index: int
    outcome: Outcome
    reason: Reason
    comparison: Comparison | None = None
    retry: bool = False
    warns: bool = False
    gradients: tuple[GradientDifference, ...] = ()
    against: int = 0
    nonfinite: NonFinite | None = None
    severed: tuple[SeveredValue, ...] = ()
    ignored: tuple[IgnoredGradient, ...] = ()


class Stage(str, Enum):
    """What is not finite first.

    DERIVATIVE: the gradient that an operation gives, though it got a finite one.
    VALUE: the result of an operation in the forward pass, so that the loss is not finite either.
    INPUT: a value that no operation of the run made.
    UNKNOWN: a gradient whose origin the graph does not show.
    NOTHING: the run came to its end, and every gradient was finite.
    """

    DERIVATIVE = "derivative"
    VALUE = "value"
    INPUT = "input"
    UNKNOWN = "unknown"
    NOTHING = "nothing"


@dataclass(frozen=True)
class CodeRange:
    """A line that a frame stood at; first and last line and first and last column (in UTF-8) of
    what was evaluated there, where known."""

    filename: str
    line: int
    columns: tuple[int, int, int, int] | None = None


@dataclass(frozen=True)
class Repair:
    """What makes an operation's derivative finite: `fill` ("1.0", or "0.0" where that does not) at
    the elements in question, or all of its operand no less than `floor`, no more than `ceiling`
    ("": no such bound).
    `result` is the one infinity ("inf", "-inf") that it gives at these elements, if it does.
    `apart` is the step by which a growing diagonal keeps equal eigenvalues or singular values of a
    square matrix apart."""

    fill: str = ""
    floor: str = ""
    ceiling: str = ""
    result: str = ""
    apart: str = ""


UNREPAIRED = Repair()


@dataclass(frozen=True)
class NonFinite:
    """Where the numbers of a run stop being finite.

    `backward` and `frames` are the user's lines, innermost first, of the backward and of the
    operation; `node` its node in the graph and `name` the function of torch's.  `operand` is the
    place of the argument (-1: not known, or not the user's) that holds `value` where the
    operation fails.  `given` says that some of what it got was not finite already.  `leaves`
    are names of those whose gradient was not, behind the first backward that made one.
    """

    stage: Stage
    backward: tuple[CodeRange, ...] = ()
    frames: tuple[CodeRange, ...] = ()
    node: str = ""
    name: str = ""
    operand: int = -1
    value: str = ""
    repair: Repair = UNREPAIRED
    given: bool = False
    leaves: tuple[str, ...] = ()


@dataclass(frozen=True)
class SeveredValue:
    """A value that a loss depends on and that left the graph at `place`; `leaves` are names of
    those behind it that the backward reaches by another way, `lost` of those that it does not.
    `drawn`: it is a sample of a distribution, which could have computed it.  `older`: nothing has
    left, but `place` is a difference whose sides take each other's gradient away, and the one of
    this number was computed first."""

    place: tuple[CodeRange, ...]
    leaves: tuple[str, ...]
    lost: tuple[str, ...] = ()
    drawn: bool = False
    older: int | None = None


@dataclass(frozen=True)
class IgnoredGradient:
    """A custom Function whose `backward`, beginning at `function`, hands back gradients that do
    not depend on what comes in, for inputs of `forward` by their `numbers`.

    `fits`: what comes in is one tensor of their shape, or one number.  `leaves` are names of those
    that get the gradient; `backward` is where one was asked for.  `second`: it is the derivative of
    what `backward` hands back that lacks how this depends on the inputs.  `missing`: it hands back
    none for them, and nothing else of the backward reached the leaves, or, `partly`, others did.
    """

    function: CodeRange
    numbers: tuple[int, ...]
    fits: bool
    leaves: tuple[str, ...]
    backward: tuple[CodeRange, ...]
    second: bool = False
    missing: bool = False
    partly: bool = False


class Reference(str, Enum):
    """Which run of the original program yields the gradients that were meant.

    SAVED_VALUES: every backward uses the values as they were when the forward pass saved them,
    in checkpointed functions too.
    It fits version errors and silent overwrites.
    RETAINED_GRAPH: no graph is freed.  It fits a second backward, as long as nothing was
    overwritten in between (then the rewrite has no reference).
    LENIENT: what torch refuses is done where only one gradient can be meant (leaf writes, writes
    into views, numpy, non-leaf tensors in an optimizer).
    RETAINED_GRADIENTS: intermediate tensors keep their `.grad`.
    OWN_DERIVATIVES: where a custom Function ignores the gradient that comes in, it hands back the
    derivative of its own forward.
    OWN_GRADIENTS: what runs inside a backward writes into copies of the gradients it is handed.
    HOOKS_ONCE: a hook that is registered again takes the place of the one before.
    KEPT_CHECKPOINTS: the same, where the second run of a checkpointed function differs.
    NONE: nothing tells what was meant (cut graphs).
    """

    SAVED_VALUES = "saved_values"
    RETAINED_GRAPH = "retained_graph"
    LENIENT = "lenient"
    RETAINED_GRADIENTS = "retained_gradients"
    OWN_DERIVATIVES = "own_derivatives"
    OWN_GRADIENTS = "own_gradients"
    HOOKS_ONCE = "hooks_once"
    KEPT_CHECKPOINTS = "kept_checkpoints"
    NONE = "none"


_VERSION = re.compile(r"has been modified by an in-?place operation|modified by an inplace")
_TWICE = re.compile(r"backward through the graph a second time|access saved \w+ after they have")


_REFUSED = re.compile(
    r"leaf Variable that requires grad (?:is being used|has been used) in an in-place operation"
    r"|is a view and is being modified in-?place"
    r"|view was created in (?:no_grad|inference) mode and is being modified in-?place"
    r"|Can't call numpy\(\) on (?:Tensor|Variable) that requires grad"
    r"|can't optimize a non-leaf Tensor"
)
_RECOMPUTED = re.compile(r"torch\.utils\.checkpoint: ")
_NO_GRADIENT = re.compile(r"The \.grad attribute of a Tensor that is not a leaf")


#: What anomaly mode raises at the first node with a NaN (torch/csrc/autograd/engine.cpp).
_NAN = re.compile(r"Function '[\w:<>]+' returned nan values")


def is_of_anomaly_mode(message: str) -> bool:
    """Whether anomaly mode has ended a backward because a gradient was NaN."""
    return _NAN.search(message) is not None


#: Of what the recorder tells.
_OF_SIGNALS = {
    "gradient-ignored": Reference.OWN_DERIVATIVES,
    "gradient-overwritten": Reference.OWN_GRADIENTS,
    "hook-registered-again": Reference.HOOKS_ONCE,
    # What the graph saved is as it was: with copies of that, too, the wrong value is used.
    "kept-output-overwritten": Reference.NONE,
}


def reference_for(
    kind: Kind, message: str, overwritten: bool = False, signal: str = ""
) -> Reference:
    """The reference that fits a message; `overwritten` says that a silent finding, of the name
    `signal`, is about a value which was overwritten after it had been saved."""
    if signal in _OF_SIGNALS:
        return _OF_SIGNALS[signal]
    if kind is Kind.SILENT:
        return Reference.SAVED_VALUES if overwritten else Reference.NONE
    if kind is Kind.ERROR and _VERSION.search(message):
        return Reference.SAVED_VALUES
    if kind is Kind.ERROR and _TWICE.search(message):
        return Reference.RETAINED_GRAPH
    if kind is Kind.ERROR and _REFUSED.search(message):
        return Reference.LENIENT
    if kind is Kind.ERROR and _RECOMPUTED.search(message):
        return Reference.KEPT_CHECKPOINTS
    if kind is Kind.WARNING and _NO_GRADIENT.search(message):
        return Reference.RETAINED_GRADIENTS
    return Reference.NONE
