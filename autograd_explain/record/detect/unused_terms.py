"""Terms of a loss whose gradient no step ever uses.

The term that trains a generator leads through the discriminator.  Where that is given samples which
were detached, for its own training or for a pool, the gradient of the term ends in the
discriminator, and is cleared there before the discriminator's own step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from ...nodes import GraphTraversal
from ..observe.tensor_facts import is_zero, root
from .finding import Mark, TimeShare, Weak, weak

_MAX_WALK = 5_000
_MAX_SUMS = 1_000
_SUMS = ("AddBackward0", "SubBackward0")
_SCALED = ("MulBackward0", "DivBackward0")


@dataclass(frozen=True)
class _Term:
    """A number that was added: `sites` are the cuts that its values come from, `leaves` what its
    gradient reaches."""

    sites: frozenset[int]
    leaves: Mapping[int, Weak]


@dataclass
class UnusedTerm:
    """A term of the loss that `backward` began with, and what was stepped since: its parameters
    got the gradient of other terms."""

    term: _Term
    backward: Mark
    stepped: dict[int, Weak] = field(default_factory=dict)
    used: bool = False

    @property
    def key(self) -> tuple[frozenset[int], int]:
        return self.term.sites, self.backward.site

    def is_cleared(self) -> bool:
        """Whether nothing is left of the gradients that it gave."""
        leaves = [leaf for gone in self.term.leaves.values() if (leaf := gone()) is not None]
        return all(leaf.grad is None or is_zero(leaf.grad) for leaf in leaves)


class UnusedTerms:
    """Follows the terms of losses that values without their graph went into, from a backward to
    the next one."""

    def __init__(self) -> None:
        self._sums: dict[int, tuple[Weak, tuple[_Term, ...]]] = {}
        self._pending: list[UnusedTerm] = []
        self._found: dict[tuple[frozenset[int], int], UnusedTerm] = {}
        self._used: set[tuple[frozenset[int], int]] = set()
        self._share = TimeShare(0.03, free=40)

    def computed(self, given: Iterable[tuple[Any, frozenset[int]]], out: Tensor) -> None:
        """`out`, a number, was computed of these, which come from cuts."""
        node = root(out).grad_fn
        is_sum = node is not None and node.name() in _SUMS
        if node is None or not (is_sum or (node.name() in _SCALED and _is_of_one(node))):
            return
        alive = [(t, sites) for t, sites in given if t is not None and t.requires_grad]
        found = [term for t, sites in alive for term in self._terms_of(t, sites, is_sum)]
        if found:
            if len(self._sums) >= _MAX_SUMS:
                self._sums.clear()
            self._sums[id(out)] = weak(out), tuple(found)

    def _terms_of(self, tensor: Tensor, sites: frozenset[int], is_sum: bool) -> Sequence[_Term]:
        known = self._known(tensor)
        if known or not is_sum or tensor.dim() or not self._share.allows():
            return known
        with self._share:
            walk = GraphTraversal((root(tensor).grad_fn,), limit=_MAX_WALK)
            leaves = {id(leaf): weak(leaf) for leaf in walk.leaves()}
        return (_Term(sites, leaves),) if walk.complete and leaves else ()

    def _known(self, tensor: Tensor) -> tuple[_Term, ...]:
        gone, terms = self._sums.get(id(tensor), (None, ()))
        return terms if gone is not None and gone() is tensor else ()

    def before_backward(self, roots: Iterable[Tensor], mark: Mark) -> None:
        for pending in self._pending:
            if pending.used:
                self._used.add(pending.key)
            elif pending.stepped and pending.is_cleared():
                self._found[pending.key] = pending
        terms = (term for tensor in roots for term in self._known(tensor))
        self._pending = [UnusedTerm(term, mark) for term in terms]

    def before_step(self, parameters: Iterable[Tensor]) -> None:
        given = {id(p): p for p in parameters if p.grad is not None} if self._pending else {}
        for pending in self._pending:
            pending.used |= not given.keys().isdisjoint(pending.term.leaves)
            pending.stepped.update({key: weak(p) for key, p in given.items()})

    def unused(self, since: int) -> Iterator[UnusedTerm]:
        """Those whose backward came after a time; of none a step has ever used the gradient."""
        for key, found in self._found.items():
            if key not in self._used and found.backward.clock > since:
                yield found


def _is_of_one(node: Any) -> bool:
    """Whether but one of the operands has a graph."""
    return sum(fn is not None for fn, _ in node.next_functions) == 1
