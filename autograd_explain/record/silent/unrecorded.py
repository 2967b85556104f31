"""Values in the graph that were changed through `.data` and then used.

The gradient goes back to what made the tensor as if the write had not been: the graph has no node
for it.  Leaves are written that way on purpose; a tensor that the program computed hardly is.
"""

from __future__ import annotations

import weakref
from collections import deque
from typing import NamedTuple

from torch import Tensor

from ...nodes import Walk
from ..log import Log
from .suspect import Budget, Mark, Marks, Suspect, Weak

_MAX_CHANGES = 200
_MAX_NODES = 50_000
_MAX_BACKWARDS = 20


class _Change(NamedTuple):
    """A write to the result of the node numbered `maker`, before nodes from `nodes` on."""

    mark: Mark
    nodes: int
    maker: int
    of: Weak
    alias: Mark | None


class Unrecorded:
    """Gathers such writes and looks, at every backward, whether what was written was used."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.found: list[Suspect] = []
        self._changes: deque[_Change] = deque(maxlen=_MAX_CHANGES)
        self._backwards: deque[int] = deque([0], maxlen=_MAX_BACKWARDS)
        self._reported: set[int] = set()
        self._walks = Budget(share=0.02, free=20)

    def changed(self, tensor: Tensor, mark: Mark, nodes: int, alias: Mark | None) -> None:
        """`tensor` got other values, and no node was made for it.

        A view is left out: its `grad_fn` may be rebuilt by the question.
        """
        if not tensor.requires_grad or tensor._base is not None or tensor.grad_fn is None:
            return
        maker = tensor.grad_fn._sequence_nr()
        self._changes.append(_Change(mark, nodes, maker, weakref.ref(tensor), alias))

    def before_backward(self, roots: tuple[Tensor, ...], mark: Mark) -> None:
        """Search the graph of `roots` for uses of changed values."""
        self._backwards.append(mark.clock)
        while self._changes and self._changes[0].mark.clock < self._backwards[0]:
            self._changes.popleft()
        if not self._changes or not self._walks.allows():
            return
        with self._walks:
            oldest = min(change.nodes for change in self._changes)
            for reached in Walk((r.grad_fn for r in roots), limit=_MAX_NODES):
                if reached.sequence >= oldest and not hasattr(reached.node, "variable"):
                    self._confront(reached.node.next_functions, reached.sequence, mark)

    def _confront(self, inputs: tuple[tuple[object, int], ...], number: int, mark: Mark) -> None:
        makers = {fn._sequence_nr() for fn, _ in inputs if fn is not None}  # type: ignore[attr-defined]
        for change in self._changes:
            if number >= change.nodes and change.maker in makers:
                self._report(change, number, mark)

    def _report(self, change: _Change, number: int, backward: Mark) -> None:
        """One finding per writing site, with the first use that is met."""
        if change.mark.site in self._reported:
            return
        self._reported.add(change.mark.site)
        marks: Marks = {"written": (change.mark._replace(made=False),), "backward": (backward,)}
        made = self.log.maker_of(number)
        if made is not None:
            marks["used"] = (Mark(made.site, made.clock),)
        if change.alias is not None:
            marks["alias"] = (change.alias,)
        evidence = {"way": "unrecorded", "tensor": change.of}
        self.found.append(Suspect("silent-overwrite", marks, evidence))
