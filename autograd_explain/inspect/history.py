"""What the program did to its tensors, in order: seen by the recorder or read from the source.

Attribution asks a `History` two questions: which statement made this graph node, and which
statements wrote to this tensor afterwards.  In check mode `record` answers from what it saw;
otherwise `inspect.abstract` answers from the source that ran and the live objects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ..model import Certainty, Place

if TYPE_CHECKING:
    import torch

    from .graph import GraphNode


@dataclass(frozen=True)
class Moment:
    """One operation at one of the user's lines.

    `order` compares moments of one history in time.  `place` is the innermost user line and its
    span the expression meant (for an assignment the whole statement); `chain` are the outer user
    lines, outermost first.  `op` is torch's name ("relu", "add_", "copy_" for item assignment,
    "step" for an optimizer).  `target` is the user's expression for the tensor made or written
    ("out", "self.queue"; for `hidden[:, t] = v` it is "hidden"), `operands` those for what was
    read, "" where no expression is known.  `version` is the version counter after a write.
    `via` are the moments that made the written tensor an alias of the one asked for, outermost
    alias last (`prob.detach()`, `out.view(-1)`, `h.data`).  `grad_mode` is None where unknown.
    """

    order: int
    place: Place
    op: str
    chain: tuple[Place, ...] = ()
    target: str = ""
    operands: tuple[str, ...] = ()
    version: int | None = None
    via: tuple[Moment, ...] = ()
    grad_mode: bool | None = None


class History(Protocol):
    """Answers about the past; None and () mean "not known", never "did not happen"."""

    @property
    def certainty(self) -> Certainty: ...

    @property
    def steps(self) -> tuple[Moment, ...]:
        """What the program did, oldest first; `op` "backward", "step" and "zero_grad" among it."""
        ...

    def maker(self, node: GraphNode) -> Moment | None:
        """The moment whose operation created this graph node (and saved its tensors)."""
        ...

    def creation(self, tensor: torch.Tensor) -> Moment | None:
        """The moment that made this tensor (`unknowns[name] = leaf.float()`), or None."""
        ...

    def writes(self, saved: SavedTensor) -> tuple[Moment, ...]:
        """The in-place writes that took the saved tensor past its saved version, oldest first."""
        ...


@dataclass(frozen=True)
class SavedTensor:
    """A saved slot of a graph node, with the tensor it holds (live: never leaves the Scene).

    `name` is the slot ("self", "result", "mat2", "weight" …); `tensor` aliases the saved tensor
    (same storage, offset, strides and version counter).  `saved_version` is None where torch
    did not say (the slot is fine, or hooks forbid to look).
    """

    node: GraphNode
    name: str
    tensor: torch.Tensor
    saved_version: int | None
    current_version: int
