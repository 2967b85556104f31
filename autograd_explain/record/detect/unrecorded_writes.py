"""Values in the graph that were changed through `.data` and then used.

The gradient goes back to what made the tensor as if the write had not been: the graph has no node
for it.  Leaves are written that way on purpose; a tensor that the program computed hardly is.
"""

from __future__ import annotations

import sys
import weakref
from collections import deque
from dataclasses import dataclass
from math import inf
from typing import Any

import torch
from torch import Tensor
from torch._C._autograd import _get_sequence_nr as sequence

from ...nodes import GraphTraversal
from ..observe.event_log import EventLog
from ..observe.tensor_facts import unseen, version
from .contents import Content, differs
from .finding import CandidateFault, Mark, Marks, TimeShare, Weak, weak

_MAX_CHANGES = 200
_MAX_NODES = 50_000
_MAX_BACKWARDS = 20


def _references(tensor: Tensor) -> int:
    return sys.getrefcount(tensor)


def _references_of_nobody() -> int:
    """What a leaf has that only the graph and a variable hold; Python and torch differ in it."""
    with unseen(), torch.inference_mode(False), torch.enable_grad():
        node: Any = torch.ones(1, device="cpu", requires_grad=True).exp().grad_fn
    leaf = node.next_functions[0][0].variable
    return _references(leaf)


_ALONE = _references_of_nobody()


@dataclass
class _Change:
    """A write to one result (`number`) of the node numbered `maker`: nodes from `nodes` on used
    other values, up to `until`, when what there was `before` was put back.  Those who keep the
    hidden writes decide how long that is known."""

    mark: Mark
    nodes: int
    maker: int
    number: int
    of: Weak
    alias: Mark | None
    before: weakref.ref[Content] | None
    until: float = inf


class Unrecorded:
    """Gathers such writes and looks, at every backward, whether what was written was used."""

    def __init__(self, log: EventLog, blind: set[str]) -> None:
        self.log = log
        self.blind = blind
        self.found: list[CandidateFault] = []
        self._changes: deque[_Change] = deque()
        self._backwards: deque[int] = deque([0], maxlen=_MAX_BACKWARDS)
        self._reported: set[int] = set()
        self._walks = TimeShare(share=0.02, free=20)

    def changed(
        self, tensor: Tensor, mark: Mark, alias: Mark | None, before: Content | None
    ) -> None:
        """`tensor` got other values, and no node was made for it; or it got its own ones back.

        A view that was written before is left out: its `grad_fn` may be rebuilt by the question.
        """
        if tensor._base is not None and version(tensor) != 0:
            return
        if not tensor.requires_grad or tensor.grad_fn is None:
            return
        maker = tensor.grad_fn._sequence_nr()
        made = maker, tensor.output_nr
        earlier = [c for c in self._changes if (c.maker, c.number) == made and c.until == inf]
        kept = earlier[0].before if earlier else None
        first = None if kept is None else kept()
        if first is not None and differs(first, tensor, moved=True) is False:
            if not first.whole:
                self.blind.add("values_sampled")
            for change in earlier:
                change.until = sequence()
            return
        of = weak(tensor)
        held = None if before is None else weakref.ref(before)
        if len(self._changes) == _MAX_CHANGES:
            self._drop_oldest()
        self._changes.append(_Change(mark, sequence(), *made, of, alias, held))

    def _drop_oldest(self) -> None:
        """Forget a change.  Where its tensor is still there, it may be used yet."""
        change = self._changes.popleft()
        told = change.mark.site in self._reported or change.until < inf
        if not told and change.of() is not None:
            self.blind.add("writes_forgotten")

    def before_backward(
        self, roots: tuple[Tensor, ...], inputs: tuple[Tensor, ...] | None, mark: Mark
    ) -> None:
        """Search the graph of `roots` for uses of changed values; `inputs` are the tensors whose
        gradient is asked for, None for all leaves."""
        if not self._changes:
            return  # as in nearly every program
        self._backwards.append(mark.clock)
        while self._changes and self._changes[0].mark.clock < self._backwards[0]:
            self._drop_oldest()
        if not self._changes or self._walks.is_spent(self.blind):
            return
        with self._walks:
            oldest = min(change.nodes for change in self._changes)
            walk = GraphTraversal((r.grad_fn for r in roots), limit=_MAX_NODES)
            for reached in walk:
                if reached.sequence >= oldest and not hasattr(reached.node, "variable"):
                    for maker, number in reached.node.next_functions:
                        if maker is not None:
                            self._confront(maker, number, reached.sequence, inputs, mark)
            if not walk.complete:
                self.blind.add("graph_not_searched")

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
            if change.nodes <= user < change.until and (change.maker, change.number) == (
                made,
                number,
            ):
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
        self.found.append(CandidateFault("silent-overwrite", marks, evidence))


def _goes_on(maker: Any, inputs: tuple[Tensor, ...] | None) -> bool:
    """Whether somebody is given a gradient that goes through what made a changed value.

    One asked for with respect to the value itself is right, and a leaf that nobody holds any more
    (an adversarial input, moved step by step) is given a gradient that nobody reads.
    """
    wanted = None if inputs is None else {id(t) for t in inputs}
    nodes = set() if inputs is None else {t.grad_fn for t in inputs if t.grad_fn is not None}
    for reached in GraphTraversal((maker,), limit=_MAX_NODES):
        leaf = getattr(reached.node, "variable", None)
        if isinstance(leaf, Tensor):
            if _references(leaf) > _ALONE if wanted is None else id(leaf) in wanted:
                return True
        elif reached.node is not maker and reached.node in nodes:
            return True
    return False
