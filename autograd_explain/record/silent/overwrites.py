"""Values saved for backward that were overwritten without the version counter noticing.

Every write of that sort is kept; when a backward begins and there is one, the graph is searched
for saved tensors it touched.  A program without such writes pays nothing.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterator
from types import FrameType
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch._C._autograd import _get_sequence_nr as sequence

from ...nodes import Walk
from ..log import Log
from ..tensors import address, root, storage, tensors_in, version
from .memory import Memory
from .regions import Region, checksum, overlap, region_of, written_region
from .suspect import Budget, Mark, Suspect, Weak

_MAX_HIDDEN = 1_000
_MAX_MEMORIES = 32
_MAX_NODES = 50_000
_MAX_BACKWARDS = 20
_MAX_SAVERS = 8
_APPLY = "torch/autograd/function.py"


class Hidden(NamedTuple):
    """A write that saved tensors of nodes numbered below `nodes` did not notice.

    `way` is data, set_data, numpy, step or function.  `storages` are the memories written,
    `region` the part (None: all of it), `tensor` the address of the tensor for set_data, `of` the
    tensor whose memory it was.  `after` is the last site at which numpy memory was still unchanged,
    `shared` the site that gave numpy the memory, `alias` the site that read the `.data` which was
    written through, `stepped` the parameters of a step.
    """

    way: str
    clock: int
    site: int
    nodes: int
    storages: frozenset[int]
    region: Region | None = None
    tensor: int = 0
    of: Weak | None = None
    after: Mark | None = None
    shared: Mark | None = None
    alias: Mark | None = None
    stepped: tuple[Weak, ...] = ()

    def owner(self, saved: Tensor) -> Weak:
        """The tensor whose memory was written, as the program knows it."""
        kept = storage(saved)
        for weak in self.stepped:
            parameter = weak()
            if parameter is not None and storage(parameter) == kept:
                return weak
        return self.of or weakref.ref(saved)


class Overwrites:
    """Gathers hidden writes and confronts them with the graph at every backward."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.found: list[Suspect] = []
        self.memories: dict[tuple[int, Region], Memory] = {}
        self._hidden: deque[Hidden] = deque(maxlen=_MAX_HIDDEN)
        self._data: dict[int, tuple[Weak, Weak, Mark]] = {}
        self._backwards: deque[int] = deque([0], maxlen=_MAX_BACKWARDS)
        self._reported: dict[int, Suspect] = {}
        self._walks = Budget(share=0.02, free=20)
        self._checks = Budget(share=0.02, free=200)
        self._slots: dict[type, tuple[str, ...]] = {}

    # `.data`

    def got_data(self, source: Tensor, result: Tensor, mark: Mark) -> None:
        """`result` is `source.data`: a new version counter on the same memory."""
        where = address(result)
        gone = weakref.ref(result, lambda _: self._data.pop(where, None))
        self._data[where] = (gone, weakref.ref(source), mark)

    def through_data(self, tensor: Tensor) -> bool:
        """Whether a tensor is a `.data` alias or a view of one."""
        return bool(self._data) and address(root(tensor)) in self._data

    def source_of(self, tensor: Tensor) -> tuple[Weak, Mark] | None:
        """What a `.data` alias or a view of one was made from, and where."""
        known = self._data.get(address(root(tensor)))
        return None if known is None else known[1:]

    def hidden_write(self, tensor: Tensor, args: tuple[Any, ...], mark: Mark, nodes: int) -> None:
        """An in-place operation through a `.data` alias."""
        known = self.source_of(tensor)
        self._hidden.append(
            Hidden(
                "data",
                mark.clock,
                mark.site,
                nodes,
                frozenset({storage(tensor)}),
                written_region(tensor, args),
                of=None if known is None else known[0],
                alias=None if known is None else known[1],
            )
        )

    def replaced_data(self, tensor: Tensor, mark: Mark, nodes: int) -> None:
        """`tensor.data = …`: what nodes saved of it is now other memory."""
        self._hidden.append(
            Hidden(
                "set_data",
                mark.clock,
                mark.site,
                nodes,
                frozenset(),
                tensor=address(tensor),
                of=weakref.ref(tensor),
            )
        )

    # Optimizers and custom Functions

    def stepped(self, parameters: list[Tensor], mark: Mark) -> None:
        """A fused step, which writes every parameter that has a gradient, unversioned."""
        stepped = [p for p in parameters if p.grad is not None]
        if stepped:
            memories = frozenset(storage(p) for p in stepped)
            weak = tuple(weakref.ref(p) for p in stepped)
            self._hidden.append(
                Hidden("step", mark.clock, mark.site, sequence(), memories, stepped=weak)
            )

    def in_function(self, tensor: Tensor, frame: FrameType, mark: Mark) -> None:
        """A write inside a custom Function's `forward`, to what it had given to save.

        What `save_for_backward` got is wrapped up only after `forward` returns, so the version
        check does not notice.  A forward that says `mark_dirty` means to write its input.
        """
        inner: FrameType | None = frame
        outer = frame.f_back
        while outer is not None and not outer.f_code.co_filename.endswith(_APPLY):
            inner, outer = outer, outer.f_back
        if outer is None or inner is None or "mark_dirty" in inner.f_code.co_names:
            return
        context = inner.f_locals.get(inner.f_code.co_varnames[0])
        kept = storage(tensor)
        for saved in tensors_in(getattr(context, "to_save", None) or ()):
            if storage(saved) == kept and saved.requires_grad:
                self._hidden.append(
                    Hidden(
                        "function",
                        mark.clock,
                        mark.site,
                        sequence(),
                        frozenset({kept}),
                        region_of(tensor),
                        of=weakref.ref(saved),
                    )
                )
                return

    # Memory shared with numpy

    def share(self, tensor: Tensor, mark: Mark, *, here: bool = False) -> None:
        """A tensor's memory may be written by numpy from here on; `here`: this call shared it."""
        key = (storage(tensor), region_of(tensor))
        if not key[0] or tensor.numel() == 0 or tensor.device.type != "cpu" or tensor.is_sparse:
            return
        known = self.memories.get(key)
        if known is None or known.tensor() is None:
            self.let_go()  # of what a loop has read and dropped
            self.memories[key] = Memory.of(tensor, mark, mark if here else None)
            while len(self.memories) > _MAX_MEMORIES:
                del self.memories[next(iter(self.memories))]

    def let_go(self) -> None:
        """Memory that nobody else has any more is not kept for our sake."""
        for key, memory in list(self.memories.items()):
            if memory.tensor() is None or memory.is_ours_alone():
                del self.memories[key]

    def look(self, mark: Mark, *, always: bool = False) -> None:
        """Has any shared memory changed since the last look?"""
        if not self.memories or not (always or self._checks.allows()):
            return
        with self._checks:
            self.let_go()
            for memory in self.memories.values():
                tensor = memory.tensor()
                if tensor is not None:
                    self._compare(memory, tensor, mark)

    def _compare(self, memory: Memory, tensor: Tensor, mark: Mark) -> None:
        now = checksum(tensor)
        by_torch = self.log.write_since(memory.mark.clock - 1, memory.storage) is not None
        if now != memory.sum and not by_torch:
            self._hidden.append(
                Hidden(
                    "numpy",
                    mark.clock,
                    mark.site,
                    memory.nodes,
                    frozenset({memory.storage}),
                    memory.region,
                    of=memory.tensor,
                    after=memory.mark,
                    shared=memory.shared,
                )
            )
        memory.sum, memory.mark, memory.nodes = now, mark, sequence()

    # The graph

    def before_backward(self, roots: tuple[Tensor, ...], mark: Mark) -> None:
        """Search the graph of `roots` for saved tensors that a hidden write touched."""
        self.look(mark, always=True)
        if self._hidden:
            self._forget(mark.clock)
        interesting = bool(self._hidden) or self.log.user_code_in_backward
        if not interesting or not self._walks.allows():
            return
        with self._walks:
            newest = max((h.nodes for h in self._hidden), default=-1)
            for node, number in _nodes(roots):
                if number < newest:
                    self._confront(node, number, mark)
                if isinstance(node, torch.autograd.function.BackwardCFunction):
                    self._confront_context(node, number, mark)

    def _forget(self, clock: int) -> None:
        """A graph that outlives this many backward calls is not waited for."""
        self._backwards.append(clock)
        while self._hidden and self._hidden[0].clock < self._backwards[0]:
            self._hidden.popleft()

    def _confront(self, node: Any, number: int, backward: Mark) -> None:
        hidden = [h for h in self._hidden if number < h.nodes]
        for slot, tensor in self._saved(node):
            kept, where = storage(tensor), address(tensor)
            for write in hidden:
                if write.tensor == where or (
                    kept in write.storages and overlap(write.region, region_of(tensor))
                ):
                    self._report(node, number, slot, tensor, write, backward)
                    break

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
                    of = weakref.ref(tensor)
                    write = Hidden("context", wrote.clock, wrote.site, number, frozenset(), of=of)
                    self._report(node, number, name, tensor, write, backward)

    def _report(
        self, node: Any, number: int, slot: str, tensor: Tensor, write: Hidden, backward: Mark
    ) -> None:
        """One finding per writing site; further savers of the same value join it."""
        made = self.log.maker_of(number)
        saved = () if made is None else (Mark(made.site, made.clock),)
        known = self._reported.get(write.site)
        if known is not None:
            others = known.marks.get("saved", ())
            if (
                saved
                and len(others) < _MAX_SAVERS
                and saved[0].site not in {m.site for m in others}
            ):
                together = sorted((*others, *saved), key=lambda m: m.clock)
                known.marks["saved"] = tuple(together)
            return
        marks: dict[str, tuple[Mark, ...]] = {"saved": saved, "backward": (backward,)}
        if write.way == "numpy" and write.after is not None:
            marks["unchanged"] = (write.after,)
            marks["noticed"] = (Mark(write.site, write.clock),)
        else:
            marks["changed"] = (Mark(write.site, write.clock, made=False),)
        for role, mark in (("alias", write.alias), ("shared", write.shared)):
            if mark is not None:
                marks[role] = (mark,)
        evidence = {
            "way": write.way,
            "node": str(node.name()),
            "slot": slot,
            "shape": str(list(tensor.shape)),
            "dtype": str(tensor.dtype).removeprefix("torch."),
            "version": version(tensor),
            "parameter": write.way == "step" or _is_leaf(write.of) or _of_leaf(node, tensor),
            "tensor": write.owner(tensor),
        }
        suspect = Suspect("silent-overwrite", marks, evidence)
        self._reported[write.site] = suspect
        self.found.append(suspect)


def _is_leaf(of: Weak | None) -> bool:
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


def _nodes(roots: tuple[Tensor, ...]) -> Iterator[tuple[Any, int]]:
    """The graph's nodes with their numbers, leaves left out.  backward is about to read the
    roots' `grad_fn` itself, so reading it here changes nothing."""
    for reached in Walk((r.grad_fn for r in roots), limit=_MAX_NODES):
        if not hasattr(reached.node, "variable"):
            yield reached.node, reached.sequence
