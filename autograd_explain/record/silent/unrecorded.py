"""Values in the graph that were changed through `.data` and then used.

The gradient goes back to what made the tensor as if the write had not been: the graph has no node
for it.  Leaves are written that way on purpose; a tensor that the program computed hardly is.
"""

from __future__ import annotations

import sys
import weakref
from collections import deque
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch._C._autograd import _get_sequence_nr as sequence

from ...nodes import Walk
from ..log import Log
from ..tensors import version
from .suspect import Budget, Mark, Marks, Suspect, Weak

_MAX_CHANGES = 200
_MAX_NODES = 50_000
_MAX_BACKWARDS = 20


def _references(tensor: Tensor) -> int:
    return sys.getrefcount(tensor)


def _references_of_nobody() -> int:
    """What a leaf has that only the graph and a variable hold; Python and torch differ in it."""
    with torch.inference_mode(False), torch.enable_grad(), torch._C.DisableTorchFunction():
        node: Any = torch.ones(1, device="cpu", requires_grad=True).exp().grad_fn
    leaf = node.next_functions[0][0].variable
    return _references(leaf)


_ALONE = _references_of_nobody()


class _Change(NamedTuple):
    """A write to one result (`number`) of the node numbered `maker`, before nodes from `nodes`."""

    mark: Mark
    nodes: int
    maker: int
    number: int
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

    def changed(self, tensor: Tensor, mark: Mark, alias: Mark | None) -> None:
        """`tensor` got other values, and no node was made for it.

        A view that was written before is left out: its `grad_fn` may be rebuilt by the question.
        """
        if tensor._base is not None and version(tensor) != 0:
            return
        if not tensor.requires_grad or tensor.grad_fn is None:
            return
        maker = tensor.grad_fn._sequence_nr()
        of = weakref.ref(tensor)
        self._changes.append(_Change(mark, sequence(), maker, tensor.output_nr, of, alias))

    def before_backward(
        self, roots: tuple[Tensor, ...], inputs: tuple[Tensor, ...] | None, mark: Mark
    ) -> None:
        """Search the graph of `roots` for uses of changed values; `inputs` are the tensors whose
        gradient is asked for, None for all leaves."""
        if not self._changes:
            return  # as in nearly every program
        self._backwards.append(mark.clock)
        while self._changes and self._changes[0].mark.clock < self._backwards[0]:
            self._changes.popleft()
        if not self._changes or not self._walks.allows():
            return
        with self._walks:
            oldest = min(change.nodes for change in self._changes)
            for reached in Walk((r.grad_fn for r in roots), limit=_MAX_NODES):
                if reached.sequence >= oldest and not hasattr(reached.node, "variable"):
                    for maker, number in reached.node.next_functions:
                        if maker is not None:
                            self._confront(maker, number, reached.sequence, inputs, mark)

    def _confront(
        self,
        maker: Any,
        number: int,
        user: int,
        inputs: tuple[Tensor, ...] | None,
        backward: Mark,
    ) -> None:
        """Whether one of the inputs of the node numbered `user` was changed before."""
        made = maker._sequence_nr()
        for change in self._changes:
            if user >= change.nodes and (change.maker, change.number) == (made, number):
                if change.mark.site not in self._reported and _goes_on(maker, inputs):
                    self._report(change, user, backward)

    def _report(self, change: _Change, number: int, backward: Mark) -> None:
        """One finding per writing site, with the first use that is met."""
        self._reported.add(change.mark.site)
        marks: Marks = {"written": (change.mark._replace(made=False),), "backward": (backward,)}
        made = self.log.maker_of(number)
        if made is not None:
            marks["used"] = (Mark(made.site, made.clock),)
        if change.alias is not None:
            marks["alias"] = (change.alias,)
        evidence = {"way": "unrecorded", "tensor": change.of}
        self.found.append(Suspect("silent-overwrite", marks, evidence))


def _goes_on(maker: Any, inputs: tuple[Tensor, ...] | None) -> bool:
    """Whether somebody is given a gradient that goes through what made a changed value.

    One asked for with respect to the value itself is right, and a leaf that nobody holds any more
    (an adversarial input, moved step by step) is given a gradient that nobody reads.
    """
    wanted = None if inputs is None else {id(t) for t in inputs}
    nodes = set() if inputs is None else {t.grad_fn for t in inputs if t.grad_fn is not None}
    for reached in Walk((maker,), limit=_MAX_NODES):
        leaf = getattr(reached.node, "variable", None)
        if isinstance(leaf, Tensor):
            if _references(leaf) > _ALONE if wanted is None else id(leaf) in wanted:
                return True
        elif reached.node is not maker and reached.node in nodes:
            return True
    return False
