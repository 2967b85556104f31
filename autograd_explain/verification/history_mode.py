"""The function mode of the verifier's watchers, which ask tensors for their history."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from .reference import around_backwards

#: torch calls it itself while it holds the lock of the tensor's history, to hand hooks on to a new
#: `grad_fn` (torch/csrc/autograd/variable.cpp, 2.13): to ask for the history then is a deadlock.
_SETS_HOOKS: Any = torch._C.TensorBase.__dict__["_backward_hooks"].__set__


class HistoryMode(TorchFunctionMode):
    """Hands calls to `call`, except one during which no tensor may be asked for its history."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if func == _SETS_HOOKS:
            return func(*args)
        return self.call(func, args, dict(kwargs or {}))

    def call(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the call, and note what it did."""
        raise NotImplementedError


class BackwardMode(HistoryMode):
    """Sees the calls of a run and, in `around`, each of its backwards."""

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Run the body."""
        with around_backwards(self.around), self:
            yield

    def around(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """What runs in the place of the engine, `original`."""
        raise NotImplementedError
