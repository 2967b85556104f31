"""The run of a program that torch refuses, with what it refuses done in its only sensible way.

Some refusals leave no doubt about the gradient that was meant.  Numbers handed to numpy carry none,
as long as the loss does not depend on them.  One of several views may be written like any single
view.  An optimizer's tensor is a leaf, if nobody holds the one behind it.  A write into a leaf
leaves two readings open: the leaf simply has another value now, or its gradient flows through the
write.  Where both give the same (an update by a multiple of the gradient, a fill that leaves
nothing of the old value), the reference is sound; otherwise it says "ambiguous".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from ..isolation.weak_references import ByTensor
from ..nodes import GraphTraversal
from .history_mode import HistoryMode
from .objects import walk
from .reference import Saved, around_backwards, replaced
from .tracked import tensors_in, writes

_TENSOR: Any = torch.Tensor
_GRAD = _TENSOR.grad.__get__
_NO_VIEWS = {"detach", "__get__", "requires_grad_"}
_SEED = 7
_MOST_COPIES = 16


class Lenient(HistoryMode):
    """Does what torch refuses.  `retain` keeps every intermediate gradient, so that a program may
    read them; only those that it reads or asks to retain are kept to the end."""

    def __init__(self, namespace: Mapping[str, Any], retain: bool = False) -> None:
        super().__init__()
        self.doubts: set[str] = set()
        #: Whether values of a graph were handed to numpy before a backward: its loss may depend
        #: on them.
        self.numbers_left = False
        #: What several views look into, as it was before the first write through one of them: a
        #: repair computes new tensors and leaves it so.
        self.overwritten: list[Saved] = []
        self._parted: dict[int, bool] = {}  #: by address of memory: whether it was written since
        self._handed_out = False
        self._namespace = namespace
        self._retain = retain
        self._asked = ByTensor[bool]()

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Run the body leniently."""
        with (
            replaced(torch.optim.Optimizer, "add_param_group", self._accepting),
            around_backwards(self._noticing),
            self,
        ):
            yield
        self._forget_unasked()

    def call(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        name, first = getattr(func, "__name__", ""), args[0] if args else None
        if not isinstance(first, torch.Tensor):
            return self._retained(func(*args, **kwargs))
        if name in ("numpy", "__array__"):
            self._handed_out = self._handed_out or first.requires_grad
            return func(first.detach(), *args[1:], **kwargs)
        if func == _GRAD or name == "retain_grad":
            self._asked[first] = True
        if writes(name) and torch.is_grad_enabled() and _leaf_behind(first) is not None:
            return self._write(func, first, args, kwargs)
        if writes(name) and self._parted.get(_address(first)) is False:
            self._parted[_address(first)] = True
            if len(self.overwritten) < _MOST_COPIES:
                self.overwritten.append(Saved(first if first._base is None else first._base))
        result = func(*args, **kwargs)
        if isinstance(result, (tuple, list)) and torch.is_grad_enabled():
            views = _single_views(first, result)
            if views is not result:
                self._parted[_address(first)] = False
            result = views
        elif not torch.is_grad_enabled() and name not in _NO_VIEWS and _is_view(first, result):
            with torch.enable_grad():  # of a tensor without a history: it stays a constant
                result = func(*args, **kwargs) if not first.requires_grad else result
        return self._retained(result)

    def _write(
        self, func: Callable[..., Any], target: torch.Tensor, args: Any, kwargs: dict[str, Any]
    ) -> Any:
        if not _one_reading(func, target, args, kwargs):
            self.doubts.add("ambiguous")
        with torch.no_grad():
            return func(*args, **kwargs)

    def _retained(self, result: Any) -> Any:
        for one in result if isinstance(result, (tuple, list)) else (result,):
            if self._retain and isinstance(one, torch.Tensor) and one.grad_fn is not None:
                one.retain_grad()
        return result

    def _forget_unasked(self) -> None:
        for _, value in walk(self._namespace) if self._retain else ():
            if isinstance(value, torch.Tensor) and value.grad_fn is not None:
                if not self._asked.get(value):
                    value.grad = None

    def _noticing(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            self.numbers_left = self.numbers_left or self._handed_out
            return original(*args, **kwargs)

        return run

    def _accepting(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def add_param_group(optimizer: Any, group: dict[str, Any]) -> Any:
            given = group.get("params", ())
            group = {**group, "params": [given] if isinstance(given, torch.Tensor) else [*given]}
            for one in group["params"]:
                tensor = one[1] if isinstance(one, tuple) else one
                if isinstance(tensor, torch.Tensor) and tensor.grad_fn is not None:
                    self._make_leaf(tensor)
            return original(optimizer, group)

        return add_param_group

    def _make_leaf(self, tensor: torch.Tensor) -> None:
        """What is optimized is the tensor itself, unless somebody holds the leaf behind it."""
        nodes = (reached.node for reached in GraphTraversal([tensor.grad_fn]))
        behind = {id(node.variable) for node in nodes if hasattr(node, "variable")}
        if any(id(value) in behind for _, value in walk(self._namespace)):
            self.doubts.add("ambiguous")
        tensor.detach_().requires_grad_()


def _address(tensor: torch.Tensor) -> int:
    try:
        return tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):
        return 0


def _leaf_behind(tensor: torch.Tensor) -> torch.Tensor | None:
    """The leaf that a write into this tensor would change.

    A view of a tensor that was a constant when it was made passes for a leaf until somebody looks
    at its history (torch 2.13), so look.
    """
    base = tensor._base if tensor._is_view() and not tensor.is_leaf else tensor
    found = tensor if base is None else base
    return found if found.requires_grad and found.is_leaf else None


def _one_reading(
    func: Callable[..., Any], target: torch.Tensor, args: Any, kwargs: dict[str, Any]
) -> bool:
    """Whether the gradient is the same before the write as after it, or nothing is left of what
    was there; tried on a copy."""
    if any(t.requires_grad for t in tensors_in((*args[1:], *kwargs.values()))):
        return False
    before = target.detach().clone().requires_grad_()
    with torch.enable_grad(), torch.random.fork_rng(devices=[]):
        after = before.clone()
        func(after, *args[1:], **kwargs)
        if not after.requires_grad:
            return True
        torch.manual_seed(_SEED)
        gradient = torch.randn_like(after)
        (found,) = torch.autograd.grad(after, before, gradient, allow_unused=True)
    return found is None or not bool(found.count_nonzero()) or torch.equal(found, gradient)


def _single_views(base: torch.Tensor, result: Any) -> Any:
    """`split`, `chunk`, `unbind`: the same views, made one by one."""
    if not result or not base.requires_grad or type(result) not in (tuple, list):
        return result
    if not all(_is_view(base, one) for one in result):
        return result
    return type(result)(
        base.as_strided(one.shape, one.stride(), one.storage_offset()) for one in result
    )


def _is_view(base: torch.Tensor, result: Any) -> bool:
    if not isinstance(result, torch.Tensor) or result is base or not result._is_view():
        return False
    return result.untyped_storage().data_ptr() == base.untyped_storage().data_ptr()
