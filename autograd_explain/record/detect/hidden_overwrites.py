"""Values saved for backward that were overwritten without the version counter noticing.

Every write of that sort is kept; when a backward begins and there is one, the graph is searched
for saved tensors it touched.  A program without such writes pays nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch._C._autograd import _get_sequence_nr as sequence

from ...custom_function import forward_frames
from ...isolation.frame_names import names_in
from ...nodes import GraphTraversal
from ..observe.event_log import EventLog
from ..observe.tensor_facts import is_plain, root, storage, tensors_in, version
from . import holders
from .contents import Content, content_of, is_small
from .finding import CandidateFault, Mark, Marks, Reference, TimeShare, Weak, weak
from .hidden import Hidden, HiddenWrites, Verdict
from .regions import Region, checksum, region_of, written_region
from .shared_memory import Memory

_MAX_MEMORIES = 32
_MAX_NODES = 50_000
_MAX_BACKWARDS = 20
_MAX_SAVERS = 8
#: Of a named tuple in half the time.
_new = tuple.__new__
#: From torch 2.10 on; before, what a node saved cannot be read without unpacking it.
_SHOWS_SAVED = hasattr(torch._C._autograd.SavedTensor, "data")


class Aliased(NamedTuple):
    """What a `.data` alias was made from, and where."""

    source: Weak
    mark: Mark


class Overwritten(NamedTuple):
    """What a write through `.data` is about to overwrite: whether a graph may have saved it, and
    what it held."""

    alias: Aliased
    saved: bool
    content: Content | None = None


class Overwrites:
    """Gathers hidden writes and confronts them with the graph at every backward."""

    def __init__(
        self,
        log: EventLog,
        blind: set[str],
        is_gradient: Callable[[Tensor], bool] = lambda tensor: False,
    ) -> None:
        self.log = log
        self.blind = blind
        self.is_gradient = is_gradient
        self.found: list[CandidateFault] = []
        self.memories: dict[tuple[int, Region], Memory] = {}
        self.hidden = HiddenWrites(blind)
        self.aliased: dict[int, tuple[Weak, Aliased]] = {}
        self._backwards: deque[int] = deque([0], maxlen=_MAX_BACKWARDS)
        self._reported: dict[int, CandidateFault] = {}
        self._walks = TimeShare(share=0.02, free=20)
        self._checks = TimeShare(share=0.02, free=200)
        self._slots: dict[type, tuple[str, ...]] = {}

    # `.data`: a new version counter on the same memory

    def alias(self, tensor: Tensor) -> Aliased | None:
        """Of a `.data` alias, or a view of one, what it is an alias of."""
        known = self.aliased.get(id(tensor))
        if known is None and self.aliased:
            known = self.aliased.get(id(tensor._base))
        return None if known is None else known[1]

    def before_write(
        self, tensor: Tensor, alias: Aliased, args: tuple[Any, ...], site: int
    ) -> Overwritten:
        """What is in the memory of a `.data` alias that is about to be written: of a large tensor
        only in the part that the write says."""
        if self.memories:
            self._look_at(tensor, Mark(site, self.log.clock))
        if not self._may_be_saved(alias):
            return _new(Overwritten, (alias, False, None))
        whole, room = region_of(root(tensor)), self.hidden.has_room
        if is_small(whole):
            return Overwritten(alias, True, content_of(root(tensor), whole, room=room))
        return Overwritten(alias, True, content_of(tensor, written_region(tensor, args), room=room))

    def _may_be_saved(self, alias: Aliased) -> bool:
        """Whether a graph may have saved the memory of a `.data` alias: a loop that updates its
        parameters so, or clears their gradients, when backward has freed the graph needs nothing
        kept."""
        source = alias.source()
        if source is None:
            return True
        if not holders.may_be_saved(source, aliases=1):
            return False
        held = not source.requires_grad and self.is_gradient(source)
        return not held or holders.may_be_saved(source, aliases=1, gradient=True)

    def not_seen_coming(self, tensor: Tensor) -> Overwritten | None:
        """Of a `.data` alias that was written without a look before: what it held is not known."""
        alias = self.alias(tensor)
        return None if alias is None else Overwritten(alias, self._may_be_saved(alias))

    def hidden_write(
        self,
        tensor: Tensor,
        args: tuple[Any, ...],
        mark: Mark,
        nodes: int,
        before: Overwritten,
    ) -> None:
        """An in-place operation through a `.data` alias."""
        for memory in self._memories_of(tensor) if self.memories else ():
            shared = memory.alias()
            if shared is not None:
                memory.looked(shared, checksum(shared), mark)
        if not before.saved:
            return
        self.hidden.add(
            Hidden(
                "data",
                mark.clock,
                mark.site,
                nodes,
                frozenset({storage(tensor)}),
                written_region(tensor, args),
                of=before.alias.source,
                alias=before.alias.mark,
                before=before.content,
            )
        )

    def before_replacing(self, tensor: Tensor, mark: Mark) -> Content | None:
        """What a tensor holds that is about to get other memory."""
        self._look_at(tensor, mark)
        if not holders.may_be_original(tensor):
            return None
        return content_of(tensor, region_of(tensor), room=self.hidden.has_room)

    def replaced_data(self, tensor: Tensor, mark: Mark, nodes: int, before: Content | None) -> None:
        """`tensor.data = …`: what nodes saved of it is now other memory."""
        if not holders.may_be_original(tensor):
            return
        of = weak(tensor)
        write = Hidden("set_data", mark.clock, mark.site, nodes, frozenset(), of=of, before=before)
        self.hidden.add(write)

    # Optimizers and custom Functions

    def stepped(self, parameters: list[Tensor], mark: Mark) -> None:
        """A fused step, which writes every parameter that has a gradient, unversioned."""
        stepped = [p for p in parameters if p.grad is not None]
        if stepped:
            memories = frozenset(storage(p) for p in stepped)
            held = tuple(weak(p) for p in stepped)
            self.hidden.add(
                Hidden("step", mark.clock, mark.site, sequence(), memories, stepped=held)
            )

    def in_function(self, tensor: Tensor, frame: FrameType, mark: Mark) -> None:
        """A write inside a custom Function's `forward`, to what it had given to save.

        What `save_for_backward` got is wrapped up only after `forward` returns, so the version
        check does not notice.  A forward that says `mark_dirty` means to write its input.
        """
        found = forward_frames(frame)
        inner = None if found is None else found[0]
        if inner is None or "mark_dirty" in inner.f_code.co_names:
            return
        context = names_in(inner).get(inner.f_code.co_varnames[0])
        kept = storage(tensor)
        for saved in tensors_in(getattr(context, "to_save", None) or ()):
            if storage(saved) == kept and saved.requires_grad:
                self.hidden.add(
                    Hidden(
                        "function",
                        mark.clock,
                        mark.site,
                        sequence(),
                        frozenset({kept}),
                        region_of(tensor),
                        of=weak(saved),
                    )
                )
                return

    # Memory shared with numpy

    def share(self, tensor: Tensor, mark: Mark, *, here: bool = False) -> None:
        """A tensor's memory may be written by numpy from here on; `here`: this call shared it."""
        if not is_plain(tensor) or tensor.device.type != "cpu" or tensor.numel() == 0:
            return
        key = (storage(tensor), region_of(tensor))
        known = self.memories.get(key)
        if known is None or known.is_gone():
            self.let_go()  # of what a loop has read and dropped
            self.memories[key] = Memory.of(tensor, mark, mark if here else None)
            while len(self.memories) > _MAX_MEMORIES:
                del self.memories[next(iter(self.memories))]

    def let_go(self) -> None:
        """Forget memory that nobody has any more."""
        for key, memory in list(self.memories.items()):
            if memory.is_gone():
                del self.memories[key]

    def look(self, mark: Mark, *, always: bool = False) -> None:
        """Has any shared memory changed since the last look?"""
        if not self.memories or not (always or self._checks.allows()):
            return
        with self._checks:
            self.let_go()
            for memory in self.memories.values():
                self._compare(memory, mark)

    def _memories_of(self, tensor: Tensor) -> list[Memory]:
        """The watched memories on the storage of a tensor."""
        kept = storage(tensor) if self.memories else 0
        return [m for m in self.memories.values() if m.storage == kept] if kept else []

    def _look_at(self, tensor: Tensor, mark: Mark) -> None:
        """What numpy wrote to the memory of a tensor comes before what torch is about to do."""
        for memory in self._memories_of(tensor):
            self._compare(memory, mark)

    def _compare(self, memory: Memory, mark: Mark) -> None:
        tensor = memory.alias()
        if tensor is None:
            return
        now = checksum(tensor)
        by_torch = self.log.write_since(memory.mark.clock - 1, memory.storage) is not None
        if now != memory.sum and not by_torch:
            self.hidden.add(
                Hidden(
                    "numpy",
                    mark.clock,
                    mark.site,
                    memory.nodes,
                    frozenset({memory.storage}),
                    memory.region,
                    of=memory.alias,
                    after=memory.mark,
                    shared=memory.shared,
                    before=memory.before,
                )
            )
        memory.looked(tensor, now, mark)

    # The graph

    def before_backward(self, roots: tuple[Tensor, ...], mark: Mark) -> None:
        """Search the graph of `roots` for saved tensors that a hidden write touched."""
        self.look(mark, always=True)
        if self.hidden:
            self._forget(mark.clock)
        interesting = bool(self.hidden) or self.log.user_code_in_backward
        if not interesting or self._walks.is_spent(self.blind):
            return
        if self.hidden and not _SHOWS_SAVED:
            self.blind.add("saved_values")
        with self._walks:
            newest = self.hidden.newest
            for node, number in self._nodes(roots):
                if number < newest:
                    self._confront(node, number, mark)
                if isinstance(node, torch.autograd.function.BackwardCFunction):
                    self._confront_context(node, number, mark)

    def _nodes(self, roots: tuple[Tensor, ...]) -> Iterator[tuple[Any, int]]:
        """The graph's nodes with their numbers, leaves left out.  backward is about to read the
        roots' `grad_fn` itself, so reading it here changes nothing."""
        walk = GraphTraversal((r.grad_fn for r in roots), limit=_MAX_NODES)
        for reached in walk:
            if not hasattr(reached.node, "variable"):
                yield reached.node, reached.sequence
        if not walk.complete:
            self.blind.add("graph_not_searched")

    def _forget(self, clock: int) -> None:
        """A graph that outlives this many backward calls is not waited for."""
        self._backwards.append(clock)
        self.hidden.forget(self._backwards[0])

    def _confront(self, node: Any, number: int, backward: Mark) -> None:
        for slot, tensor in self._saved(node):
            verdict = self.hidden.verdict(tensor, number)
            if verdict is not None:
                self._report(node, number, slot, tensor, verdict, backward)

    def _saved(self, node: Any) -> Iterator[tuple[str, Tensor]]:
        """The saved tensors that can be looked at, running statistics in training left out."""
        slots = self._slots.get(type(node))
        if slots is None:
            prefix = "_raw_saved_"
            slots = tuple(a[len(prefix) :] for a in dir(node) if a.startswith(prefix))
            self._slots[type(node)] = slots
        training = getattr(node, "_saved_training", False) is True
        for slot in slots:
            if training and slot.startswith("running_"):
                continue
            try:
                handles = getattr(node, f"_raw_saved_{slot}")
                for handle in handles if isinstance(handles, (tuple, list)) else (handles,):
                    if handle is not None and getattr(handle, "unpack_hook", None) is None:
                        tensor = handle.data
                        if isinstance(tensor, Tensor):
                            yield slot, tensor
            except (RuntimeError, AttributeError):
                continue  # freed, or a torch without `.data` there

    def _confront_context(self, node: Any, number: int, backward: Mark) -> None:
        """Tensors kept on `ctx` instead of by save_for_backward: nobody checks their version."""
        made = self.log.maker_of(number)
        if made is None:
            return
        for name, tensor in list(vars(node).items()):
            if isinstance(tensor, Tensor) and tensor.is_floating_point():
                kept = storage(tensor)
                wrote = self.log.write_since(made.clock, kept)
                if wrote is not None:
                    of = weak(tensor)
                    write = Hidden("context", wrote.clock, wrote.site, number, frozenset(), of=of)
                    verdict = Verdict(write, write)
                    self._report(node, number, name, tensor, verdict, backward)

    def _report(
        self, node: Any, number: int, slot: str, tensor: Tensor, verdict: Verdict, backward: Mark
    ) -> None:
        """One finding per writing site; further savers of the same value join it."""
        made = self.log.maker_of(number)
        saved = () if made is None else (Mark(made.site, made.clock),)
        write = verdict.by or verdict.first
        known = self._reported.get(write.site)
        if known is not None:
            _join(known, saved, str(node.name()), slot)
            return
        marks: dict[str, tuple[Mark, ...]] = {"saved": saved, "backward": (backward,)}
        marks.update(_marks(write) if verdict.by is not None else {})
        evidence = {
            "way": write.way,
            "node": str(node.name()),
            "slot": slot,
            "savers": {m.clock: (str(node.name()), slot) for m in saved},
            "shape": str(list(tensor.shape)),
            "dtype": str(tensor.dtype).removeprefix("torch."),
            "version": version(tensor),
            "parameter": write.way == "step" or _is_leaf(write.of) or _of_leaf(node, tensor),
            "tensor": write.owner(tensor),
        }
        suspect = CandidateFault("silent-overwrite", marks, evidence)
        self._reported[write.site] = suspect
        self.found.append(suspect)


def _join(known: CandidateFault, saved: tuple[Mark, ...], node: str, slot: str) -> None:
    """A further saver of what a suspect tells of."""
    others = known.marks.get("saved", ())
    if saved and len(others) < _MAX_SAVERS and saved[0].site not in {m.site for m in others}:
        together = sorted((*others, *saved), key=lambda m: m.clock)
        known.marks["saved"] = tuple(together)
        known.evidence["savers"][saved[0].clock] = node, slot


def _marks(write: Hidden) -> Marks:
    marks: Marks = {}
    if write.way == "numpy" and write.after is not None:
        marks["unchanged"] = (write.after,)
        marks["noticed"] = (Mark(write.site, write.clock),)
    else:
        marks["changed"] = (Mark(write.site, write.clock, made=False),)
    for role, mark in (("alias", write.alias), ("shared", write.shared)):
        if mark is not None:
            marks[role] = (mark,)
    return marks


def _is_leaf(of: Reference | None) -> bool:
    """Whether it is trained; of a view its base is asked (see `tensors`)."""
    tensor = None if of is None else of()
    if tensor is None:
        return False
    base = root(tensor)
    return base.requires_grad and base.grad_fn is None


def _of_leaf(node: Any, saved: Tensor) -> bool:
    """Whether a leaf that the node reads, itself or through one view of it, has this memory."""
    inputs = [fn for fn, _ in node.next_functions if fn is not None]
    inputs += [fn for inner in inputs for fn, _ in inner.next_functions if fn is not None]
    leaves = (getattr(fn, "variable", None) for fn in inputs)
    return any(isinstance(leaf, Tensor) and storage(leaf) == storage(saved) for leaf in leaves)
