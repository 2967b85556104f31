"""What interception hands to the other stages: the live failure, held for one explanation only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

from .model import Kind, Place
from .program import Program

if TYPE_CHECKING:
    from .record.recording import Recording


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
    def function(self) -> str:
        return self.frame.f_code.co_name


@dataclass(frozen=True, eq=False)
class Incident:
    """An error, a warning or a silent finding, with everything live that explains it.

    `frames` are outermost first, library frames included.  `namespace` is the user's.  `cell` is
    the execution count of the cell that ran.  `signal` names a finding of the recorder ("" for
    errors and warnings) and `evidence` is its data.  `recording` is there in check mode only.
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
    recording: Recording | None = None

    @property
    def user_frames(self) -> tuple[LiveFrame, ...]:
        """The frames of the user's own code, outermost first."""
        return tuple(f for f in self.frames if self.program.is_user_code(f.filename))

    @property
    def place(self) -> Place | None:
        """The innermost of the user's lines at which it surfaced."""
        return self.place_of(self.user_frames[-1]) if self.user_frames else None

    def place_of(self, frame: LiveFrame) -> Place | None:
        return self.program.place(frame.filename, frame.line, frame.function)


def frames_of(traceback: TracebackType | None) -> tuple[LiveFrame, ...]:
    """The frames of a traceback, outermost first."""
    found = []
    while traceback is not None:
        found.append(LiveFrame(traceback.tb_frame, traceback.tb_lineno, traceback.tb_lasti))
        traceback = traceback.tb_next
    return tuple(found)
