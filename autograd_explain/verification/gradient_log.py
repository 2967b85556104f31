"""What every backward of a run gave: the gradients may be cleared again before the run ends."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from ..isolation.weak_references import ByTensor
from ..nodes import GraphTraversal
from .reference import around_backwards
from .running import RunningFunctions

MAX_NODES = 20_000
MAX_ENTRIES = 2_000


@dataclass
class GradientEntry:
    """The last gradient that a leaf (or an input of torch.autograd.grad) received, and the one that
    an optimizer used last."""

    gradient: torch.Tensor
    stepped: torch.Tensor | None = None


class Listener(Protocol):
    """Is told of steps and backwards as they come."""

    def stepped(self, tensors: Iterable[torch.Tensor]) -> None: ...

    def accumulated(self, leaves: Iterable[torch.Tensor]) -> None: ...


class GradientLog:
    """Notes each backward's outputs and gradients.  `files` are the file names of the cells."""

    def __init__(self, files: Collection[str], listener: Listener | None = None) -> None:
        self._listener = listener
        self.losses: list[float] = []
        self.backwards = 0  #: that came to their end
        #: Whether every leaf that a backward reached was noted, and none of them forgotten.
        self.complete = True
        self._entries = ByTensor[GradientEntry]()
        self._named: dict[str, GradientEntry] = {}
        self._best: set[str] = set()  #: of these names one for each tensor
        self._steps = ByTensor[torch.Tensor]()
        self._running = RunningFunctions(files)

    @contextmanager
    def noting(self) -> Iterator[None]:
        hook = register_optimizer_step_pre_hook(self._note_step)
        try:
            with around_backwards(self._wrap):
                yield
        finally:
            hook.remove()

    def of(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """The last gradient of a tensor, None where no backward reached it."""
        entry = self._entries.get(tensor)
        return None if entry is None else entry.gradient

    def stepped(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """The gradient that the last step of an optimizer used for a tensor."""
        return self._steps.get(tensor)

    def named(self, *, every: bool = False) -> dict[str, torch.Tensor]:
        """The last gradient of the last tensor under the best name that a function of the program
        had for it when its first backward ran; under `every` name that it had: an edited program
        may have more of them."""
        return {n: e.gradient for n, e in self._named.items() if every or n in self._best}

    def named_steps(self, *, every: bool = False) -> dict[str, torch.Tensor]:
        """As `named`, what an optimizer used last."""
        found = ((n, e.stepped) for n, e in self._named.items() if every or n in self._best)
        return {name: stepped for name, stepped in found if stepped is not None}

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
                used = self._steps[tensor] = tensor.grad.detach().clone()
                entry = self._entries.get(tensor)
                if entry is not None:
                    entry.stepped = used
            if self._listener is not None:
                self._listener.stepped(moved)

    def _note(self, outputs: Any, result: Any, args: Any, kwargs: Any) -> None:
        self.backwards += 1
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
            given = gradient.detach().clone()
            entry = self._entries.get(tensor)
            if entry is not None:
                entry.gradient = given
                continue
            if len(self._entries) >= MAX_ENTRIES:
                self.complete = self._entries.forget() and self.complete
            entry = self._entries[tensor] = GradientEntry(given, self._steps.get(tensor))
            new.append((tensor, entry))
        if new:
            known = self._running.spellings({id(tensor) for tensor, _ in new})
            named = [(known[id(t)], entry) for t, entry in new if id(t) in known]
            best = {names[0]: entry for names, entry in named}
            self._best.update(best)
            self._named |= {name: entry for names, entry in named for name in names} | best


def leaves_of(outputs: Iterable[torch.Tensor]) -> tuple[list[torch.Tensor], bool]:
    """The tensors into which a backward from these outputs accumulates, and whether it is all."""
    found = [t for t in outputs if t.is_leaf]
    graph = GraphTraversal((t.grad_fn for t in outputs), limit=MAX_NODES)
    found += graph.leaves()
    return found, graph.complete
