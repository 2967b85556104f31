"""Gradients that the turn of another optimizer leaves in the sum that a step uses.

A loss that goes back to an actor through its critic, or to a generator through its discriminator,
fills the gradients of both.  Cleared behind its own step and not again before its own backward, the
critic steps with what the actor's loss has left.  Two losses may both be meant for a step: only
what is used behind all that the other optimizer holds is taken for a mere part of that one's way.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from torch import Tensor

from ...nodes import GraphTraversal
from .finding import Mark

_MAX_NODES = 5_000
_MAX_LOOKS = 3
_MAX_MODELS = 8


@dataclass
class _Suspect:
    """The leaves of a step and those of the optimizers in whose turn a backward filled them too;
    `behind`: that backward's forward pass used the former after all of the latter."""

    own: frozenset[int]
    others: frozenset[int]
    behind: bool = False
    looks: int = 0


class LeftByOthers:
    """Suspects by order, confirmed by the graph of the next such backward of the same leaves."""

    def __init__(self) -> None:
        self._suspects: dict[int, list[_Suspect]] = {}

    def before_backward(self, roots: Iterable[Tensor], site: int) -> None:
        for suspect in self._suspects.get(site, ()):
            if not suspect.behind and suspect.looks < _MAX_LOOKS:
                suspect.looks += 1
                suspect.behind = _is_used_behind(roots, suspect)

    def is_left(self, backward: Mark, own: Collection[Tensor], others: Iterable[Tensor]) -> bool:
        """Whether what a backward of another turn has added is known to be no part of the step;
        the first time it is noted, for each of the models that the same lines train."""
        ids, suspects = frozenset(map(id, own)), self._suspects.setdefault(backward.site, [])
        known = next((s for s in suspects if s.own >= ids), None)
        if known is None and len(suspects) < _MAX_MODELS:
            suspects.append(_Suspect(ids, frozenset(map(id, others)) - ids))
        return known is not None and known.behind


def _is_used_behind(roots: Iterable[Tensor], suspect: _Suspect) -> bool:
    walk = GraphTraversal((r.grad_fn for r in roots), limit=_MAX_NODES)
    # A leaf's node comes right behind the last operation that used it, the newest first.
    leaves = list(walk.leaves())
    own = [rank for rank, leaf in enumerate(leaves) if id(leaf) in suspect.own]
    others = [rank for rank, leaf in enumerate(leaves) if id(leaf) in suspect.others]
    return walk.complete and bool(own and others) and max(own) < min(others)
