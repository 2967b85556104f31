"""What lives in a session, looked for before it is forked.

To look at every object is to count a reference to it, and a fork copies each page that it writes
to: in the replays themselves the same look would cost each of them the memory of all objects.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any

import torch

from ..isolation.type_checks import is_a, with_subclasses


class Alive:
    """What was there before, as far as it was looked for; what came since is found as it is."""

    def __init__(self) -> None:
        # From here on the collector sees new objects only; a fresh session has no others.
        gc.freeze()
        self._tensors: list[weakref.ref[Any]] | None = None
        self._functions: dict[str, list[weakref.ref[FunctionType]]] = {}

    def look_for_tensors(self) -> None:
        """Once; for `tensors`, in a copy of a session."""
        if self._tensors is None:
            with _everything():
                # An instance refers to its class: to ask for referrers counts none of the others.
                found = gc.get_referrers(*with_subclasses(torch.Tensor))
            self._tensors = [weakref.ref(o) for o in found if is_a(o, torch.Tensor)]

    def look_for_functions(self, files: Collection[str]) -> None:
        """Once for each file; for `functions_of`."""
        new = set(files) - self._functions.keys()
        if not new:
            return
        self._functions |= {file: [] for file in new}
        with _everything():
            for value in gc.get_objects():
                if type(value) is FunctionType and value.__code__.co_filename in new:
                    self._functions[value.__code__.co_filename].append(weakref.ref(value))

    def tensors(self) -> list[Any]:
        """Every tensor, reachable by name or not."""
        older = (ref() for ref in self._tensors or ())
        return [
            *(tensor for tensor in older if tensor is not None),
            *(o for o in gc.get_objects() if is_a(o, torch.Tensor)),
        ]

    def functions_of(self, file: str) -> Iterator[FunctionType]:
        """The functions whose code is of a file that was looked for."""
        found = (ref() for ref in self._functions[file])
        return (function for function in found if function is not None)


@contextmanager
def _everything() -> Iterator[None]:
    """What was set aside is looked at, too, and set aside again."""
    gc.unfreeze()
    try:
        yield
    finally:
        gc.freeze()
