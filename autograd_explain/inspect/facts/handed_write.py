"""The in-place write to what a library made, and the call in which that was saved, told without
any run: no run of the source may get to it.

A tensor that was saved before anything had written to it is overwritten by whatever writes to it
at all.  What was saved while a module ran was saved by the call of it: nodes are numbered in the
order in which they are made, and those that use the module's parameters were made by that call.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import torch

from ...isolation.type_checks import is_a
from ..history import TraceEvent
from ..live.graph import SavedTensor
from ..live.names import shares_memory
from ..scene import Scene
from .certain_run import CertainRun, LibraryCall, RanWrite
from .statements import Form, SourceWrite, writes_in


@dataclass(frozen=True, eq=False)
class Handed:
    """The writes that certainly ran, oldest first, and the call of a library's module inside which
    the tensor was saved."""

    writes: tuple[TraceEvent, ...] = ()
    saver: TraceEvent | None = None


def handed(scene: Scene, saved: SavedTensor) -> Handed:
    """What is certain of a tensor that was saved before anything had written to it."""
    if saved.saved_version != 0:
        return Handed()
    known = _Saved(scene, saved)
    run = CertainRun(scene)
    found = [w for w in run.writes if known.is_written_by(w)]
    events = {w.place.line_id: _event(w) for w in reversed(found)}
    returned = [w.value.call for w in found if w.value.call is not None]
    calls = [c for c in run.calls if known.is_of(c)]
    calls = calls or [c for c in returned if known.is_of(c, returned=True)]
    told = tuple(reversed(events.values())) if len(events) <= saved.current_version else ()
    return Handed(told, _saver(calls, saved))


def _kind(name: str) -> str:
    """`CopySlices` of `torch::autograd::CopySlices`, `MulBackward` of `MulBackward0`."""
    return name.rpartition("::")[2].rstrip("0123456789")


def _event(ran: RanWrite) -> TraceEvent:
    target = ast.unparse(ran.target)
    return TraceEvent(0, ran.place, ran.write.op, ran.chain, target=target)


def _saver(calls: Iterable[LibraryCall], saved: SavedTensor) -> TraceEvent | None:
    found = {call.place.line_id: call for call in calls}
    if len(found) != 1:
        return None
    (call,) = found.values()
    return TraceEvent(0, call.place, saved.node.name, call.chain)


@dataclass(frozen=True, eq=False)
class _Saved:
    scene: Scene
    saved: SavedTensor

    def is_written_by(self, ran: RanWrite) -> bool:
        """Whether a write reached it: a live name has it where the write is certain, or the graph
        shows the write to what a library's call has returned."""
        value, call = ran.value.live, ran.value.call
        if is_a(value, torch.Tensor):
            shared = shares_memory(value, self.saved.tensor)
            return shared and ran.certain and value._version == self.saved.current_version
        returned = call is not None and self.is_of(call, returned=True)
        return returned and self._is_in_graph(ran.write)

    def _is_in_graph(self, write: SourceWrite) -> bool:
        """Whether all newer nodes of the written kind take the saved result, one after the other,
        and no other statement of the program writes in that way."""
        kind = write.op.strip("_").title().replace("_", "")
        part = write.form is Form.ITEM  # written through a view, or where an index says
        names = {"CopySlices", "IndexPutBackward" if part else f"{kind}Backward"}
        made = self.saved.node
        newer = [n for n in self.scene.graph.inner if n.sequence > made.sequence]
        chain = [made, *(n for n in reversed(newer) if _kind(n.name) in names)]
        linked = all(n.node.next_functions[0][0] is below.node for below, n in pairwise(chain))
        others = [w for _, w in writes_in(self.scene.index) if w.op == write.op]
        alone = all(w.statement is write.statement for w in others)
        return self.saved.name == "result" and alone and linked and len(chain) > 1

    def is_of(self, call: LibraryCall, *, returned: bool = False) -> bool:
        """Whether the saving node was made between the first and the last use of a parameter of the
        module, which was called once; of a result that it `returned` the end is known."""
        uses = [u for p in call.module.parameters() if (u := self._uses.get(id(p)))]
        once = [u[0] for u in uses if len(u) == 1]
        if not self.scene.graph.complete or 2 * len(once) <= len(uses):
            return False
        made = self.saved.node.sequence
        ended = (returned and self.saved.name == "result") or made < max(once)
        return min(once) < made and ended

    @cached_property
    def _uses(self) -> Mapping[int, list[int]]:
        """When each leaf was used, by its identity."""
        graph = self.scene.graph
        leaves = ((n, n.variable) for n in graph.nodes)
        return {id(v): [p.sequence for p in graph.parents(n)] for n, v in leaves if v is not None}
