"""The run of the original program that yields the gradients it was meant to have.

Whatever the forward pass saves is copied at that moment, and every backward gets the copies:
no later write can reach them, whether it went through the version counter, `.data`, numpy's
memory or a fused optimizer.  torch's own allow_mutation_on_saved_tensors copies at the time of
the write instead; it looks tensors up by address and version (torch 2.13, `_get_sid`), so a write
through another view, through `.data` of a tensor that was written before, or by numpy passes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch.autograd import graph as autograd_graph
from torch.autograd.function import BackwardCFunction

from ..nodes import Walk


class Saved:
    """A saved tensor: the value when it was saved, and the memory it was saved from."""

    __slots__ = ("alias", "copy", "counted")

    def __init__(self, tensor: torch.Tensor) -> None:
        with torch.no_grad():
            self.alias = tensor.detach()
            self.copy = self.alias.clone()
        self.counted = False

    def overwritten(self) -> bool:
        try:
            return not same(self.alias, self.copy)
        except RuntimeError:  # its storage was resized or freed
            return True


class SavedCopies:
    """What a reference run learned: which saved values were overwritten, what makes it unsound.

    `doubts` are reasons for which its gradients may not be the ones that were meant.
    """

    def __init__(self) -> None:
        self.overwritten: list[Saved] = []
        self.doubts: set[str] = set()

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Run the body with copies."""
        with ExitStack() as stack:
            stack.enter_context(self._hooks())
            stack.enter_context(_copying_contexts(self))
            stack.enter_context(_noticing_foreign_hooks(self.doubts))
            yield

    def _hooks(self) -> Any:
        return autograd_graph.saved_tensors_hooks(Saved, self._unpack)

    def _unpack(self, saved: Saved) -> torch.Tensor:
        if not saved.counted and saved.overwritten():
            saved.counted = True
            self.overwritten.append(saved)
        return saved.copy

    def protect_existing(self, tensors: list[torch.Tensor]) -> None:
        """Copy what graphs made earlier have saved.

        A backward that uses one of them is noted: whether it was overwritten before without a
        trace cannot be known any more.  One that no backward of this run reaches says nothing,
        whatever became of it: the session may hold any number of old graphs.
        """
        walk = Walk(t.grad_fn for t in tensors)
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

    with replaced(torch.autograd, "_engine_run_backward", retain):
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
                with torch.no_grad():
                    value = value.clone()
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
def _noticing_foreign_hooks(doubts: set[str]) -> Iterator[None]:
    """Activation checkpointing and the program's own hooks save by other means than copying."""

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
