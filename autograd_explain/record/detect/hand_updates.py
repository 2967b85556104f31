"""Leaves that no optimizer has, and whether their gradient is ever cleared.

`delta -= lr * delta.grad` in a loop: each backward adds to `delta.grad`, so that without a reset
every update uses the sum of all gradients so far.  So does `rows.append(x.grad.clone())` behind one
backward after the other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from torch import Tensor

from ..observe.event_log import EventLog, Wrote
from ..observe.tensor_facts import address, storage, version
from .finding import CandidateFault, Mark, Weak, weak

_MAX_LEAVES = 50
#: Once may be meant: a gradient at moved weights on top of the one before (adversarial training).
_TIMES = 2


@dataclass
class _Updated:
    """A leaf with its gradient as a backward left it; `times` that an update came between two
    backwards without the gradient being cleared, `first` the first such update.  `reads` are the
    sites at which the gradient was read before, and how many backwards it held then."""

    leaf: Weak
    gradient: Weak
    version: int
    clock: int
    times: int = 0
    first: Mark | None = None
    backwards: int = 1
    reads: dict[int, int] = field(default_factory=dict)


class HandUpdates:
    """Follows leaves that no optimizer steps, from one backward to the next.

    `leaves` are told apart by identity."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self.leaves: dict[int, _Updated] = {}
        self.asked: set[int] = set()  #: the inputs of torch.autograd.grad
        self._summed: dict[int, tuple[Mark, Weak]] = {}  #: reads of sums, by their sites
        self._since = 0  #: the time of the backward before
        self._writes: list[Wrote] = []  #: the writes since then, the newest first

    def begin(self) -> None:
        """A cell begins."""
        self.leaves.clear()
        self.asked.clear()
        self._summed.clear()

    def stepped(self, parameters: Iterable[Tensor]) -> None:
        """An optimizer has these."""
        for parameter in parameters if self.leaves else ():
            self.leaves.pop(id(parameter), None)
            for site in [s for s, (_, leaf) in self._summed.items() if leaf() is parameter]:
                del self._summed[site]

    def after_backward(self, leaves: Iterable[Tensor]) -> None:
        """A backward has filled the gradients of `leaves`, which no optimizer has stepped."""
        clock = self._log.clock
        self._writes = self._log.writes_after(self._since)
        for leaf in leaves:
            gradient = leaf.grad
            if gradient is None or (id(leaf) not in self.leaves and self._is_full):
                continue
            known = self.leaves.get(id(leaf))
            if known is None or known.leaf() is not leaf or self._is_cleared(known, gradient):
                known = _Updated(weak(leaf), weak(gradient), 0, clock)
                self.leaves[id(leaf)] = known
            else:
                known.backwards += 1
                update = self._write(known.clock, storage(leaf), address(leaf))
                if update is not None:
                    known.times += 1
                    known.first = known.first or Mark(update.site, update.clock, made=False)
            known.version, known.clock = version(gradient), clock
        self._since = clock

    def read(self, leaf: Tensor, mark: Mark) -> None:
        """The gradient of a leaf is read.  That of a parameter may be watched as it adds up."""
        known = self.leaves.get(id(leaf))
        if known is None or known.leaf() is not leaf:
            return
        before = known.reads.setdefault(mark.site, known.backwards)
        if type(leaf) is Tensor and before < known.backwards and not known.times:
            self._summed[mark.site] = mark, known.leaf

    def is_let_go(self, leaf: Tensor) -> bool:
        """Whether several backwards have added to the gradient of a leaf that no step and no update
        changes, and nobody has read it or asked for it apart."""
        known = self.leaves.get(id(leaf))
        if known is None or known.leaf() is not leaf or id(leaf) in self.asked:
            return False
        return known.backwards > 1 and not known.reads and not known.times

    def is_unread(self, leaf: Tensor) -> bool:
        """Whether a backward has filled its gradient, and nobody has read it since."""
        known = self.leaves.get(id(leaf))
        read = known is None or known.leaf() is not leaf or bool(known.reads)
        return not read and id(leaf) not in self.asked

    def is_gradient(self, tensor: Tensor) -> bool:
        """Whether a tensor is the gradient of such a leaf."""
        return any(
            u.gradient() is tensor and (leaf := u.leaf()) is not None and leaf.grad is tensor
            for u in self.leaves.values()
        )

    @property
    def _is_full(self) -> bool:
        return len(self.leaves) >= _MAX_LEAVES

    def _is_cleared(self, known: _Updated, gradient: Tensor) -> bool:
        """Whether it is another tensor than before, was written, or got nothing."""
        if known.gradient() is not gradient or version(gradient) == known.version:
            return True
        return self._write(known.clock, storage(gradient), 0) is not None

    def _write(self, since: int, kept: int, where: int) -> Wrote | None:
        """The last write to a storage, or to the tensor at an address, after a time."""
        recent = self._writes if since >= self._since else self._log.writes_after(since)
        for wrote in recent:
            if wrote.clock <= since:
                return None
            if wrote.storage == kept != 0 or wrote.tensor == where != 0:
                return wrote
        return None

    def left_over(self, backward: Mark) -> list[CandidateFault]:
        """One finding for all leaves of the cell."""
        found = [u for u in self.leaves.values() if u.times >= _TIMES]
        updates = {u.first.site: u.first for u in found if u.first is not None}
        if not updates:
            return self._read_sums(backward)
        ordered = sorted(updates.values(), key=lambda mark: mark.clock)
        marks = {"backward": (backward,), "updated": tuple(ordered)}
        evidence = {"parameters": tuple(u.leaf for u in found)}
        return [CandidateFault("gradients-not-cleared", marks, evidence)]

    def _read_sums(self, backward: Mark) -> list[CandidateFault]:
        """One finding for all sums that were read in the cell."""
        if not self._summed:
            return []
        marks = {"backward": (backward,), "read": tuple(m for m, _ in self._summed.values())}
        evidence = {"parameters": tuple(leaf for _, leaf in self._summed.values())}
        return [CandidateFault("gradients-not-cleared", marks, evidence)]
