"""What the program did to its tensors, in order: seen by the recorder or read from the source.

Attribution asks a `History` two questions: which statement made this graph node, and which
statements wrote to this tensor afterwards.  In check mode `record` answers from what it saw;
otherwise `inspect.shadow` answers from the source that ran and the live objects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ..model import Certainty, Place

if TYPE_CHECKING:
    import torch

    from .live.graph import GraphNode, SavedTensor


@dataclass(frozen=True)
class TraceEvent:
    """One operation at one of the user's lines.

    `order` compares moments of one history in time.  `place` is the innermost user line and its
    span the expression meant (for an assignment the whole statement); `chain` are the outer user
    lines, outermost first.  `op` is torch's name ("relu", "add_", "copy_" for item assignment,
    "step" for an optimizer).  `target` is the user's expression for the tensor made or written
    ("out", "self.queue"; for `hidden[:, t] = v` it is "hidden"), `operands` those for what was
    read, "" where no expression is known.  `version` is the version counter after a write.
    `via` are the moments that made the written tensor an alias of the one asked for, outermost
    alias last (`prob.detach()`, `out.view(-1)`, `h.data`).  `grad_mode` is None where unknown.
    `inside` is the line of a library at which it happened, where that is known.
    """

    order: int
    place: Place
    op: str
    chain: tuple[Place, ...] = ()
    target: str = ""
    operands: tuple[str, ...] = ()
    version: int | None = None
    via: tuple[TraceEvent, ...] = ()
    grad_mode: bool | None = None
    inside: Place | None = None

    @property
    def path(self) -> tuple[Place, ...]:
        """The user's lines from the outermost to the one where it happened."""
        return (*self.chain, self.place)


class History(Protocol):
    """Answers about the past; None and () mean "not known", never "did not happen"."""

    @property
    def certainty(self) -> Certainty: ...

    @property
    def steps(self) -> tuple[TraceEvent, ...]:
        """What the program did, oldest first; `op` "backward", "step" and "zero_grad" among it."""
        ...

    def maker(self, node: GraphNode) -> TraceEvent | None:
        """The moment whose operation created this graph node (and saved its tensors)."""
        ...

    def creation(self, tensor: torch.Tensor) -> TraceEvent | None:
        """The moment that made this tensor (`unknowns[name] = leaf.float()`), or None."""
        ...

    def writes(self, saved: SavedTensor) -> tuple[TraceEvent, ...]:
        """The in-place writes that took the saved tensor past its saved version, oldest first."""
        ...
