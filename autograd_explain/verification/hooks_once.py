"""A run in which a hook that is registered again takes the place of the one before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from ..hooks import OF_MODULE, OF_TENSOR, hooks_in
from ..live_definitions import code_of
from .reference import replaced


@contextmanager
def hooks_once() -> Iterator[None]:
    """Run the body so: of hooks with the same code a tensor or a module has the last only."""
    with ExitStack() as stack:
        for owner, tables in ((torch.Tensor, OF_TENSOR), (torch.nn.Module, OF_MODULE)):
            for name, table in tables.items():
                stack.enter_context(replaced(owner, name, _instead(table)))
        yield


def _instead(table: str) -> Callable[[Any], Any]:
    def registering(original: Callable[..., Any]) -> Callable[..., Any]:
        def register(self: Any, hook: Any, *args: Any, **kwargs: Any) -> Any:
            with torch._C.DisableTorchFunctionSubclass():
                known, code = hooks_in(self, table), code_of(hook)
                for key in [k for k, h in known.items() if code and code_of(h) is code]:
                    del known[key]
            return original(self, hook, *args, **kwargs)

        return register

    return registering
