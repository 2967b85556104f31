"""The past as it was seen: answers to the questions of `inspect.history.History`."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from ...inspect.history import TraceEvent
from ...inspect.live.graph import SavedTensor
from ...model import Certainty
from .event_log import Alias, EventLog, Made, Wrote
from .site_reader import SiteReader
from .tensor_facts import address, quiet, storage

if TYPE_CHECKING:
    import torch

    from ...inspect.live.graph import GraphNode

#: A call that runs the user's code inside (backward) is noted after the calls within.
_NESTED = 64


class ObservedHistory:
    """Reads a log; the live tensors that it is asked about make the log's addresses meaningful."""

    certainty = Certainty.OBSERVED

    def __init__(self, log: EventLog, moments: SiteReader) -> None:
        self._log = log
        self._moments = moments

    @property
    def steps(self) -> tuple[TraceEvent, ...]:
        """Every backward, step and zero_grad, oldest first."""
        found = (self._moments.mark(m.site, m.clock, m.what) for m in self._log.landmarks)
        return tuple(m for m in found if m is not None)

    def maker(self, node: GraphNode) -> TraceEvent | None:
        made = self.made(node.sequence)
        return None if made is None else self._moments.made(made.site, made.clock, node.name)

    def made(self, sequence: int) -> Made | None:
        """The call that a node's number belongs to."""
        at = bisect_right(self._ends, sequence)
        for made in self._made[at : at + _NESTED]:
            if made.first <= sequence < made.end:
                return made
        return None

    def creation(self, tensor: torch.Tensor) -> TraceEvent | None:
        with quiet():
            node = tensor.grad_fn
            where = address(tensor)
        if node is not None:
            made = self.made(node._sequence_nr())
            return None if made is None else self._moments.made(made.site, made.clock, node.name())
        born = self._log.birth(where, tensor)
        return None if born is None else self._moments.made(born.site, born.clock)

    def writes(self, saved: SavedTensor) -> tuple[TraceEvent, ...]:
        with quiet():
            kept, where = storage(saved.tensor), address(saved.tensor)
        made = self.made(saved.node.sequence)
        since = -1 if made is None else made.clock
        found = sorted((*self._writes(kept, where), *self._stepped(kept)), key=lambda w: w.clock)
        low = saved.saved_version if saved.saved_version is not None else -1
        fitting = [w for w in found if w.before >= low and w.after <= saved.current_version]
        fitting = [w for w in fitting if w.clock > since]
        moments = (
            self._moments.wrote(w.site, w.clock, w.after, self._via(w, where)) for w in fitting
        )
        return tuple(m for m in moments if m is not None)

    def _writes(self, kept: int, where: int) -> Iterator[Wrote]:
        for wrote in self._log.wrote:
            same = wrote.storage == kept != 0 or wrote.tensor == where
            if same and wrote.own and wrote.after != wrote.before:
                yield wrote

    def _stepped(self, kept: int) -> Iterator[Wrote]:
        for step in self._log.stepped:
            for i, other in enumerate(step.storages):
                if other == kept and step.after[i] != step.before[i]:
                    yield Wrote(step.clock, step.site, kept, 0, step.before[i], step.after[i], True)

    def _via(self, wrote: Wrote, saved: int) -> tuple[TraceEvent, ...]:
        """How the written tensor became an alias, from the tensor asked about on."""
        chain: list[Alias] = []
        alias = self._aliases.get(wrote.alias) if wrote.tensor != saved else None
        while alias is not None and alias.storage == wrote.storage and len(chain) < 16:
            chain.append(alias)
            alias = self._aliases.get(alias.parent) if alias.of != saved else None
        moments = (self._moments.made(a.site, a.clock) for a in reversed(chain))
        return tuple(m for m in moments if m is not None)

    @cached_property
    def _aliases(self) -> dict[int, Alias]:
        """By their time."""
        return {alias.clock: alias for alias in self._log.aliases}

    @cached_property
    def _made(self) -> list[Made]:
        return [Made(*m) for m in self._log.made]

    @cached_property
    def _ends(self) -> list[int]:
        return [m.end for m in self._made]
