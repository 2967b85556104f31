"""What every backward of a run gave: the gradients may be cleared again before the run ends."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, Protocol

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from ..isolation.weak_references import Weak, hide, weak
from ..nodes import GraphTraversal
from .objects import spelled, walk
from .reference import replaced

MAX_NODES = 20_000
MAX_UNNAMED = 2_000


@dataclass
class GradientEntry:
    """The last gradient that a leaf (or an input of torch.autograd.grad) received.

    `name` is one that it had in a function of the program while its backward ran.
    """

    tensor: Weak
    gradient: torch.Tensor
    name: str = ""


class Listener(Protocol):
    """Is told of steps and backwards as they come."""

    def stepped(self, tensors: Iterable[torch.Tensor]) -> None: ...

    def accumulated(self, leaves: Iterable[torch.Tensor]) -> None: ...


class GradientLog:
    """Notes each backward's outputs and gradients.  `files` are the program's file names."""

    def __init__(self, files: Collection[str], listener: Listener | None = None) -> None:
        hide(self)
        self._listener = listener
        self.losses: list[float] = []
        #: Whether every leaf that a backward reached was noted, and none of them forgotten.
        self.complete = True
        self._entries: dict[int, GradientEntry] = {}
        self._steps: dict[int, GradientEntry] = {}
        self._files = files

    @contextmanager
    def noting(self) -> Iterator[None]:
        hook = register_optimizer_step_pre_hook(self._note_step)
        try:
            with replaced(torch.autograd, "_engine_run_backward", self._wrap):
                yield
        finally:
            hook.remove()

    def of(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """The last gradient of a tensor, None where no backward reached it."""
        entry = self._entries.get(id(tensor))
        return entry.gradient if entry is not None and entry.tensor() is tensor else None

    def stepped(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """The gradient that the last step of an optimizer used for a tensor."""
        entry = self._steps.get(id(tensor))
        return entry.gradient if entry is not None and entry.tensor() is tensor else None

    def named(self) -> dict[str, torch.Tensor]:
        """The last gradient under each name that functions of the program used."""
        return {e.name: e.gradient for e in self._entries.values() if e.name}

    def _wrap(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def run(outputs: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(outputs, *args, **kwargs)
            with torch._C.DisableTorchFunctionSubclass(), torch.no_grad():
                self._note(outputs, result, args, kwargs)
            return result

        return run

    def _note_step(self, optimizer: torch.optim.Optimizer, *args: Any) -> None:
        with torch._C.DisableTorchFunctionSubclass(), torch.no_grad():
            held = [t for group in optimizer.param_groups for t in group["params"]]
            moved = [t for t in held if t.grad is not None]
            for tensor in moved:
                used = GradientEntry(weak(tensor), tensor.grad.detach().clone())
                self._steps[id(tensor)] = used
            if self._listener is not None:
                self._listener.stepped(moved)

    def _note(self, outputs: Any, result: Any, args: Any, kwargs: Any) -> None:
        tensors = [t for t in outputs if isinstance(t, torch.Tensor)]
        for tensor in tensors:
            if tensor.numel() == 1 and not tensor.is_complex():
                self.losses.append(float(tensor.detach()))
        if kwargs.get("accumulate_grad"):
            leaves, complete = leaves_of(tensors)
            self.complete = self.complete and complete
            found = [(leaf, leaf.grad) for leaf in leaves]
            if self._listener is not None:
                self._listener.accumulated(leaves)
        else:
            found = list(zip(args[3] if len(args) > 3 else (), result or (), strict=False))
        self._add([(t, g) for t, g in found if isinstance(t, torch.Tensor) and g is not None])

    def _add(self, found: list[tuple[torch.Tensor, torch.Tensor]]) -> None:
        new = []
        for tensor, gradient in found:
            entry = self._entries.get(id(tensor))
            if entry is None or entry.tensor() is not tensor:
                if len(self._entries) >= MAX_UNNAMED:
                    self._forget()
                entry = GradientEntry(weak(tensor), gradient)
                self._entries[id(tensor)] = entry
                new.append((tensor, entry))
            entry.gradient = gradient.detach().clone()
        if new:
            names = self._names()
            for tensor, entry in new:
                entry.name = names.get(id(tensor), "")

    def _forget(self) -> None:
        gone = [k for k, e in self._entries.items() if e.tensor() is None and not e.name]
        self.complete = self.complete and bool(gone)
        for key in gone or list(self._entries)[: MAX_UNNAMED // 2]:
            del self._entries[key]

    def _names(self) -> dict[int, str]:
        """Names in the program's functions that are running, innermost first."""
        names: dict[int, str] = {}
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            code = frame.f_code
            if code.co_filename in self._files and code.co_name != "<module>":
                for path, value in walk(_locals(frame)):
                    if isinstance(value, torch.Tensor):
                        names.setdefault(id(value), spelled(path))
            frame = frame.f_back
        return names


def _locals(frame: FrameType) -> Mapping[str, Any]:
    return frame.f_locals


def leaves_of(outputs: Iterable[torch.Tensor]) -> tuple[list[torch.Tensor], bool]:
    """The tensors into which a backward from these outputs accumulates, and whether it is all."""
    found = [t for t in outputs if t.is_leaf]
    graph = GraphTraversal((t.grad_fn for t in outputs), limit=MAX_NODES)
    for reached in graph:
        if type(reached.node).__name__ == "AccumulateGrad":
            found.append(reached.node.variable)
    return found, graph.complete
