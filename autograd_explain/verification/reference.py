"""The run of the original program that yields the gradients it was meant to have.

Whatever the forward pass saves is copied at that moment, and every backward gets the copies:
no later write can reach them, whether it went through the version counter, `.data`, numpy's
memory or a fused optimizer.  torch's own allow_mutation_on_saved_tensors copies at the time of
the write instead; it looks tensors up by address and version (torch 2.13, `_get_sid`), so a write
through another view, through `.data` of a tensor that was written before, or by numpy passes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any
from weakref import WeakValueDictionary

import torch
from torch.autograd import graph as autograd_graph
from torch.autograd.function import BackwardCFunction

from ..isolation.weak_references import ByTensor
from ..nodes import GraphTraversal

#: The doubt whether a value may be used again that was computed of parameters of an earlier step.
STALE = "stale"


class Whole:
    """The memory behind saved parts of a tensor, as it was when the first of them was saved."""

    __slots__ = ("__weakref__", "counted", "storage")
    MAX_BYTES = 1 << 26

    def __init__(self, part: torch.Tensor) -> None:
        storage: Any = part.untyped_storage()
        self.storage = storage.clone()
        self.counted = False


class Saved:
    """A saved tensor: the value when it was saved, and the memory it was saved from."""

    __slots__ = ("alias", "born", "copy", "counted", "passed", "version", "whole")

    def __init__(self, tensor: torch.Tensor, born: int = 0) -> None:
        self.born = born
        self.whole: Whole | None = None
        with torch.no_grad():
            self.alias = tensor.detach()
            self.copy = self.alias.clone()
        self.version = 0  # counted where a part of a larger tensor was saved
        self.counted = False
        self.passed: int | None = None  #: the last backward that used it

    def overwritten(self) -> bool:
        try:
            return not same(self.alias, self.copy)
        except RuntimeError:  # its storage was resized or freed
            return True


class SavedCopies:
    """What a reference run learned: which saved values were overwritten, what makes it unsound.

    `doubts` are reasons for which its gradients may not be the ones that were meant.  `updates`
    says that an update between two backwards is one of them.
    """

    def __init__(self, updates: bool = False) -> None:
        self.overwritten: list[Saved] = []
        self.doubts: set[str] = set()
        self._updates = _Updates(self.doubts, updates)
        # By address: a Saved holds both the Whole and the memory it was copied from.
        self._wholes: WeakValueDictionary[int, Whole] = WeakValueDictionary()

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Run the body with copies."""
        with ExitStack() as stack:
            stack.enter_context(self._hooks())
            stack.enter_context(_copying_contexts(self))
            stack.enter_context(_noticing_foreign_hooks(self.doubts))
            stack.enter_context(_keeping_checkpoints())
            yield

    def _hooks(self) -> Any:
        return autograd_graph.saved_tensors_hooks(self._pack, self._unpack)

    def _pack(self, tensor: torch.Tensor) -> Saved:
        saved = Saved(tensor, self._updates.tick())
        saved.whole = self._whole_of(saved)
        return saved

    def _whole_of(self, saved: Saved) -> Whole | None:
        """What a part that was saved is a part of: other parts may be written unsaved."""
        try:
            storage: Any = saved.alias.untyped_storage()
            address, size = storage.data_ptr(), storage.nbytes()
        except (RuntimeError, NotImplementedError):
            return None
        if size <= saved.copy.nbytes or size > Whole.MAX_BYTES or storage.device.type != "cpu":
            return None
        saved.version = saved.alias._version
        whole = self._wholes.get(address)
        if whole is None:
            whole = self._wholes[address] = Whole(saved.alias)
        return whole

    def stepped(self, tensors: Iterable[torch.Tensor]) -> None:
        """An optimizer is about to move these."""
        self._updates.stepped(tensors)

    def accumulated(self, leaves: Iterable[torch.Tensor]) -> None:
        """A backward has accumulated into these."""
        self._updates.accumulated(list(leaves))

    def _unpack(self, saved: Saved) -> torch.Tensor:
        self._updates.passed(saved)
        if not saved.counted and saved.overwritten():
            saved.counted = True
            self.overwritten.append(saved)
            self._updates.needed.append(saved)
        elif saved.whole is not None and saved.alias._version != saved.version:
            if not saved.whole.counted:  # torch refuses, though this part was not written
                saved.whole.counted = True
                self.overwritten.append(saved)
        return saved.copy

    def protect_existing(self, tensors: list[torch.Tensor]) -> None:
        """Copy what graphs made earlier have saved.

        A backward that uses one of them is noted: whether it was overwritten before without a
        trace cannot be known any more.  One that no backward of this run reaches says nothing,
        whatever became of it: the session may hold any number of old graphs.
        """
        walk = GraphTraversal(t.grad_fn for t in tensors)
        for reached in walk:
            for name in dir(reached.node):
                if name.startswith("_raw_saved_"):
                    self._protect(reached.node, name)
        if not walk.complete:
            self.doubts.add("older_graph")

    def _protect(self, node: Any, name: str) -> None:
        try:
            if getattr(node, name).unpack_hook is None:
                getattr(node, name.replace("_raw", "", 1))
        except AttributeError:  # before torch 2.13 a SavedTensor does not show its hook
            pass
        except RuntimeError as error:
            if "modified by an inplace" in str(error):
                self._doubt_when_used(node, "overwritten_earlier")
            return  # or freed: nothing is saved any more
        slot = getattr(node, name)
        for one in slot if isinstance(slot, (tuple, list)) else (slot,):
            try:
                one.register_hooks(Saved, self._unpack_existing)
            except RuntimeError as error:  # nothing was saved there, or it has its own hooks
                if "already" in str(error):
                    self._doubt_when_used(node, "older_graph")

    def _doubt_when_used(self, node: Any, doubt: str) -> None:
        node.register_prehook(lambda gradients: self.doubts.add(doubt))

    def _unpack_existing(self, saved: Saved) -> torch.Tensor:
        self.doubts.add("older_graph")
        return self._unpack(saved)


class _Updates:
    """Notices updates of parameters that came between two backwards of one graph.

    Where the later backward leaves gradients in those parameters only, they belong to the update
    as much as the earlier ones: whether it should wait for them or not is open.  Where it reaches
    others as well (a generator behind a discriminator), it is for those.  It is open, too, where
    the later backward passes again what the earlier one passed: that was computed of parameters
    which are others now, and may have been kept by mistake.
    """

    def __init__(self, doubts: set[str], of_parameters: bool) -> None:
        self.needed: list[Saved] = []
        self._doubts = doubts
        self._of_parameters = of_parameters
        self._clock = 0
        self._backwards = 0
        self._again: list[Saved] = []
        self._steps = ByTensor[int]()
        self._versions = ByTensor[int]()

    def tick(self) -> int:
        self._clock += 1
        return self._clock

    def stepped(self, tensors: Iterable[torch.Tensor]) -> None:
        now = self.tick()
        for tensor in tensors:
            self._steps[tensor] = now

    def passed(self, saved: Saved) -> None:
        """A backward uses it."""
        if saved.passed is not None and saved.passed != self._backwards:
            self._again.append(saved)
        saved.passed = self._backwards

    def accumulated(self, leaves: list[torch.Tensor]) -> None:
        self._backwards += 1
        overwritten = self.needed if self._of_parameters else []
        needed = [s for s in overwritten if any(_same_storage(s.alias, t) for t in leaves)]
        for doubt, saved in (("ambiguous", needed), (STALE, self._again)):
            if saved and not any(self._kept(t, min(s.born for s in saved)) for t in leaves):
                self._doubts.add(doubt)
        self.needed.clear()
        self._again.clear()
        for leaf in leaves:
            self._versions[leaf] = leaf._version

    def _kept(self, leaf: torch.Tensor, born: int) -> bool:
        """Whether it is as it was when the graph was made."""
        step, version = self._steps.get(leaf), self._versions.get(leaf)
        if step is not None:
            return step < born
        return version is None or version == leaf._version


def _same_storage(first: torch.Tensor, second: torch.Tensor) -> bool:
    try:
        return first.untyped_storage().data_ptr() == second.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):
        return False


def same(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Equal, nan equal to nan."""
    if first.shape != second.shape or first.dtype != second.dtype:
        return False
    if torch.equal(first, second):
        return True
    if not (first.is_floating_point() or first.is_complex()):
        return False
    return bool(((first == second) | ((first != first) & (second != second))).all())


@contextmanager
def retained_graphs() -> Iterator[None]:
    """Every backward keeps its graph."""

    def retain(original: Callable[..., Any]) -> Callable[..., Any]:
        def run(outputs: Any, gradients: Any, retain_graph: Any, *args: Any, **kws: Any) -> Any:
            return original(outputs, gradients, True, *args, **kws)

        return run

    with around_backwards(retain):
        yield


@contextmanager
def around_backwards(make: Callable[[Any], Any]) -> Iterator[None]:
    """Run what `make` makes of the engine in its place, but where a function transform
    differentiates: its tensors stand for batches and levels, and are gone when it ends."""

    def chosen(original: Callable[..., Any]) -> Callable[..., Any]:
        made = make(original)

        def run(*args: Any, **kwargs: Any) -> Any:
            transformed = torch._C._functorch.peek_interpreter_stack() is not None
            return (original if transformed else made)(*args, **kwargs)

        return run

    with replaced(torch.autograd, "_engine_run_backward", chosen):
        yield


@contextmanager
def replaced(owner: Any, name: str, make: Callable[[Any], Any]) -> Iterator[None]:
    """Replace an attribute by `make(original)` for the body."""
    original = getattr(owner, name)
    own = name in vars(owner)
    setattr(owner, name, make(original))
    try:
        yield
    finally:
        if own or not isinstance(owner, type):
            setattr(owner, name, original)
        else:
            delattr(owner, name)


@contextmanager
def _copying_contexts(copies: SavedCopies) -> Iterator[None]:
    """The same for what a custom Function keeps: tensors that it overwrites after
    save_for_backward (torch takes them when its forward has ended), and tensors on `ctx`."""
    base: Any = torch._C._FunctionBase.saved_tensors

    def save(original: Callable[..., None]) -> Callable[..., None]:
        def save_for_backward(self: Any, *tensors: Any) -> None:
            kept = tuple(Saved(t) if isinstance(t, torch.Tensor) else None for t in tensors)
            object.__setattr__(self, "_autograd_explain_kept", kept)
            original(self, *tensors)

        return save_for_backward

    def saved_tensors(self: Any) -> tuple[Any, ...]:
        found = base.__get__(self)
        kept = getattr(self, "_autograd_explain_kept", (None,) * len(found))
        return tuple(
            k.copy if k is not None and not same(t.detach(), k.copy) else t
            for t, k in zip(found, kept, strict=True)
        )

    def assign(original: Callable[..., None]) -> Callable[..., None]:
        def __setattr__(self: Any, name: str, value: Any) -> None:
            if isinstance(value, torch.Tensor):
                value = value.clone()  # with a graph in a backward that is recorded
            original(self, name, value)

        return __setattr__

    with ExitStack() as stack:
        for name, make in (
            ("save_for_backward", save),
            ("saved_tensors", lambda original: property(saved_tensors)),
            ("__setattr__", assign),
        ):
            stack.enter_context(replaced(BackwardCFunction, name, make))
        yield


@contextmanager
def _keeping_checkpoints() -> Iterator[None]:
    """Keep what checkpointed functions save: backward runs none of them again.

    The hooks that leave placeholders instead (`_checkpoint_hook` in torch/utils/checkpoint.py,
    torch 2.13) are not set; reentrant checkpoints have none.
    """
    import torch.utils.checkpoint as checkpoint

    with replaced(checkpoint, "_checkpoint_hook", lambda _: lambda frame: nullcontext()):
        yield


@contextmanager
def _noticing_foreign_hooks(doubts: set[str]) -> Iterator[None]:
    """Reentrant checkpoints and the program's own hooks save by other means than copying."""

    def noticed(original: Callable[..., Any]) -> Callable[..., Any]:
        def __enter__(self: Any) -> Any:
            if not isinstance(self, autograd_graph.save_on_cpu):
                doubts.add("recomputed")
            return original(self)

        return __enter__

    def forward(original: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            doubts.add("recomputed")
            return original(*args, **kwargs)

        return staticmethod(run)

    import torch.utils.checkpoint as checkpoint

    with (
        replaced(autograd_graph.saved_tensors_hooks, "__enter__", noticed),
        replaced(checkpoint.CheckpointFunction, "forward", forward),
    ):
        yield
