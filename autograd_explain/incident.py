"""What interception hands to the other stages: the live failure, held for one explanation only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import CodeType, FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from .isolation.type_checks import class_attribute, raised_from
from .model import Kind, Place
from .program import Program

if TYPE_CHECKING:
    import torch

    from .inspect.history import History, TraceEvent


@dataclass(frozen=True, eq=False)
class LiveFrame:
    """A frame of the failure and where it stood: line and instruction as the traceback has them,
    since the frame itself may have moved on."""

    frame: FrameType
    line: int
    lasti: int = -1

    @property
    def filename(self) -> str:
        return self.frame.f_code.co_filename

    @property
    def code(self) -> CodeType:
        return self.frame.f_code

    @property
    def function(self) -> str:
        return self.frame.f_code.co_name


class Recorded(Protocol):
    """What was noted while the program ran (`record.Recording`)."""

    def covers(self, incident: Incident) -> bool:
        """Whether the operations behind this failure were watched."""
        ...

    def history(self, program: Program) -> History: ...

    def cuts_behind(
        self, tensor: torch.Tensor | None, program: Program, leaf: torch.Tensor | None = None
    ) -> tuple[TraceEvent, ...]:
        """Where the values of a live tensor left the graph, or of anything that a backward went
        back from, the last such call first; with `leaf` only those below that."""
        ...


@dataclass(frozen=True, eq=False)
class Incident:
    """An error, a warning or a silent finding, with everything live that explains it.

    `frames` are outermost first, library frames included.  `namespace` is the user's.  `cell` is
    the execution count of the cell that ran.  `signal` names a finding of the recorder ("" for
    errors and warnings) and `evidence` is its data.  `recording` is there in check mode only.
    `patched` says that the session has put code of its own in the place of functions of torch's.
    Of an error that crossed from another process nothing live is left but its text: its frames are
    stand-ins without variables, and `likely` are the causes that the text speaks for, best first.
    """

    kind: Kind
    message: str
    program: Program
    namespace: Mapping[str, Any]
    frames: tuple[LiveFrame, ...] = ()
    exception: BaseException | None = None
    cell: int | None = None
    signal: str = ""
    evidence: Mapping[str, Any] = field(default_factory=dict)
    recording: Recorded | None = None
    patched: bool = False
    likely: tuple[str, ...] = ()

    @property
    def user_frames(self) -> tuple[LiveFrame, ...]:
        """The frames of the user's own code, outermost first."""
        return tuple(f for f in self.frames if self.program.source_of(f.code) is not None)

    @property
    def place(self) -> Place | None:
        """The innermost of the user's lines at which it surfaced."""
        return self.place_of(self.user_frames[-1]) if self.user_frames else None

    def place_of(self, frame: LiveFrame) -> Place | None:
        return self.program.place_of(frame.code, frame.line, frame.lasti)


def frames_of(traceback: TracebackType | None) -> tuple[LiveFrame, ...]:
    """The frames of a traceback, outermost first."""
    found = []
    while traceback is not None:
        found.append(LiveFrame(traceback.tb_frame, traceback.tb_lineno, traceback.tb_lasti))
        traceback = traceback.tb_next
    return tuple(found)


def backward_context(frames: Iterable[LiveFrame]) -> Any:
    """The `ctx` of the custom Function whose backward ran innermost; None where none did."""
    for live in reversed(tuple(frames)):
        first = live.code.co_varnames[:1] if live.code.co_argcount else ()
        if live.function == "backward" and first:
            value = live.frame.f_locals.get(first[0])
            if class_attribute(type(value), "_forward_cls") is not None:
                return value
    return None


def at_the_engine(incident: Incident) -> Incident:
    """The incident at the call of backward, where a custom Function's backward asked for what it
    had saved (`ctx.saved_tensors`): the graph refuses that, the user's own backward is not wrong.
    """
    place = incident.place
    if place is None or not any(f".{name}" in place.source for name in _SAVED):
        return incident
    frames = incident.frames
    if backward_context(frames[-1:]) is None:
        return incident
    called = (i for i, f in enumerate(frames) if f.function == "apply" and _is_torchs(f))
    return replace(incident, frames=frames[: max(called, default=len(frames))])


def _is_torchs(live: LiveFrame) -> bool:
    return live.filename.replace("\\", "/").endswith("torch/autograd/function.py")


_SAVED = ("saved_tensors", "saved_variables")
_MAX_CHAIN = 10  #: exceptions looked at behind the one that was shown


def running(frames: Iterable[LiveFrame]) -> tuple[list[CodeType], list[tuple[str, int]]]:
    """The code of some frames, and the file names and lines at which they stopped."""
    frames = tuple(frames)
    return [f.code for f in frames], [(f.filename, f.line) for f in frames]


def chain_of(error: BaseException) -> list[BaseException]:
    """The exception and those it was raised from, the shown one first."""
    found: list[BaseException] = []
    here: BaseException | None = error
    seen: set[int] = set()
    while here is not None and id(here) not in seen and len(found) < _MAX_CHAIN:
        found.append(here)
        seen.add(id(here))
        here = raised_from(here)
    return found
