"""What speaks against a rewrite that runs, where no reference judges it.

A loss may depend on leaves that its backward does not reach.  The leaves that were handed to torch
since the backward before, but got nothing from this one, are moved a little right before their
first use: where the loss follows, something between them and it has cut the graph.  It may be meant
(a target, a straight-through trick), so this speaks against a rewrite among others, and proves
nothing.  And what the original program had computed before it failed is mostly no mistake: the
losses of those backwards are to come out the same, and their gradients, unless a graph reached too
far in them already.

A gradient of zeros is no sign of a repair either: what is awaited and gets nothing else is moved
as well, and where the loss stays as it is, zeros are right.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from .differences import direction
from .gradient_log import leaves_of
from .history_mode import BackwardMode
from .nonfinite import is_zero
from .objects import spellings_in
from .running import RunningFunctions
from .tracked import tensors_in

_STEP = 1e-2  #: a share of the leaf's own magnitude
_NOISE = 1e-6  #: relative change of a loss that is the same


@dataclass(frozen=True)
class Reach:
    """A backward: its loss, and which of the leaves used since the one before it did not reach, by
    their number in the order of their first use in the run.  `given` tells the gradients that
    the others have got apart from other ones; None: it failed.  `single` says that the loss was
    one number.  `reached` are the leaves that it did reach, `zero` the awaited of them that it gave
    zeros."""

    loss: float
    missed: tuple[int, ...]
    single: bool
    given: tuple[float, ...] | None = None
    reached: frozenset[int] = frozenset()
    zero: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Shift:
    """The leaves of these numbers are to be moved, in the round that this backward ends."""

    backward: int
    leaves: tuple[int, ...]


class Dependence(BackwardMode):
    """Notes what each backward of a run reaches, and moves what a shift asks for."""

    def __init__(
        self,
        namespace: Mapping[str, Any],
        running: RunningFunctions,
        shift: Shift | None = None,
        awaited: Collection[str] = (),
    ) -> None:
        super().__init__()
        self.found: list[Reach] = []
        self._namespace = namespace
        self._running = running
        self._awaited = frozenset(awaited)
        self._shift = shift
        self._known: dict[int, tuple[int, torch.Tensor]] = {}  # their identities stay theirs
        self._used: dict[int, int] = {}
        self._versions: dict[int, int] = {}  #: of what was moved

    def call(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        for tensor in tensors_in((*args, *kwargs.values())):
            if id(tensor) not in self._used and _is_leaf(tensor):
                number, _ = self._known.setdefault(id(tensor), (len(self._known), tensor))
                self._used[id(tensor)] = number
            if id(tensor) in self._used:
                self._move(tensor, self._used[id(tensor)])
        return func(*args, **kwargs)

    def _move(self, leaf: torch.Tensor, number: int) -> None:
        shift = self._shift
        if shift is None or shift.backward != len(self.found) or number not in shift.leaves:
            return
        # An initializer uses a leaf first, and writes over what was moved.
        version = 0 if leaf.is_inference() else leaf._version
        if self._versions.get(number) != version:
            self._versions[number] = version
            leaf.data.add_(direction(leaf, number), alpha=_STEP)

    def around(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def run(outputs: Any, *args: Any, **kwargs: Any) -> Any:
            with torch._C.DisableTorchFunctionSubclass(), torch.no_grad():
                reached = leaves_of([t for t in outputs if isinstance(t, torch.Tensor)])[0]
                self._note(outputs, reached)
            result = original(outputs, *args, **kwargs)
            with torch._C.DisableTorchFunctionSubclass(), torch.no_grad():
                given = [leaf.grad for leaf in reached if leaf.grad is not None]
                given = list(tensors_in((result,))) or given
                told, zero = told_apart(given), self._zeros(reached)
                self.found[-1] = replace(self.found[-1], given=told, zero=zero)
            return result

        return run

    def _note(self, outputs: Iterable[Any], reached: Iterable[torch.Tensor]) -> None:
        keys = {id(leaf) for leaf in reached}
        # What has been frozen since it was used is not meant to be reached.
        trained = {key for key in self._used if self._known[key][1].requires_grad}
        missed = tuple(n for key, n in self._used.items() if key in trained - keys)
        numbers = [t.numel() for t in outputs if isinstance(t, torch.Tensor)]
        known = frozenset(number for key, (number, _) in self._known.items() if key in keys)
        loss = sum(_total(t) for t in outputs)
        self.found.append(Reach(loss, missed, numbers == [1], reached=known))
        self._used.clear()

    def _zeros(self, reached: Iterable[torch.Tensor]) -> frozenset[int]:
        """The numbers of the awaited leaves whose gradient is 0."""
        keys = {id(t) for t in reached if t.grad is not None and is_zero(t.grad)}
        if not keys or not self._awaited:
            return frozenset()
        inside, outside = self._running.spellings(keys), spellings_in(self._namespace)
        named = {key: {*inside.get(key, ()), *outside.get(key, ())} for key in keys}
        found = [key for key, names in named.items() if names & self._awaited]
        return frozenset(self._known[key][0] for key in found if key in self._known)


def told_apart(gradients: Iterable[torch.Tensor]) -> tuple[float, ...]:
    """A number for each, in an order that no renaming changes."""
    found = (g for g in gradients if not g.is_sparse and not g.is_complex())
    return tuple(sorted(float((g.double() * direction(g, 0)).sum()) for g in found))


def _total(value: Any) -> float:
    tells = isinstance(value, torch.Tensor) and not value.is_complex()
    return float(value.detach().double().sum()) if tells else 0.0


def _is_leaf(tensor: torch.Tensor) -> bool:
    with torch._C.DisableTorchFunctionSubclass():
        plain = tensor.requires_grad and tensor.is_floating_point() and not tensor._is_view()
        return plain and tensor.is_leaf


def shift_for(found: Sequence[Reach], meant: Collection[int] = ()) -> Shift | None:
    """What to move: all that the last backward which missed any has missed, but for leaves that
    are `meant` to be."""
    for number in reversed(range(len(found))):
        missed = tuple(leaf for leaf in found[number].missed if leaf not in meant)
        if missed:
            return Shift(number, missed)
    return None


def shift_of_zeros(found: Sequence[Reach]) -> Shift | None:
    """What to move: the awaited leaves to which the last backward that gave any zeros gave them."""
    given = ((n, tuple(found[n].zero)) for n in reversed(range(len(found))) if found[n].zero)
    return next((Shift(number, leaves) for number, leaves in given), None)


def missed_before(before: Sequence[Reach]) -> frozenset[int]:
    """What the original's backwards missed without failing: a teacher, the other player."""
    return frozenset(n for reach in before if reach.given is not None for n in reach.missed)


def follows(shift: Shift, before: Sequence[Reach], after: Sequence[Reach]) -> bool:
    """Whether the loss is another once the leaves have moved."""
    if len(after) <= shift.backward:
        return False
    first, second = before[shift.backward].loss, after[shift.backward].loss
    if not math.isfinite(first) or not math.isfinite(second):
        return False
    return abs(first - second) > _NOISE * max(abs(first), abs(second))


def starves(before: Sequence[Reach], after: Sequence[Reach]) -> bool:
    """Whether fewer leaves get a gradient in all than the original's completed backwards gave."""
    completed = [reach.reached for reach in before if reach.given is not None]
    given = frozenset[int]().union(*completed), frozenset[int]().union(*(r.reached for r in after))
    return len(given[1]) < len(given[0])


def keeps_losses(before: Sequence[Reach], after: Sequence[Reach]) -> bool:
    """Whether the losses of the backwards that the original completed come out the same."""
    completed = sum(reach.given is not None for reach in before)
    pairs = zip(before[:completed], after, strict=False)
    return all(same_numbers((old.loss,), (new.loss,)) for old, new in pairs)


def keeps_gradients(before: Sequence[Reach], after: Sequence[Reach]) -> bool:
    """Whether the gradients of these backwards come out the same, and the loss of the one that
    failed; where that is no number, there is nothing to hold it against."""
    for old, new in zip(before, after, strict=False):
        if old.given is None:
            return not old.single or same_numbers((old.loss,), (new.loss,))
        if not same_numbers(old.given, new.given or ()):
            return False
    return True


def same_numbers(first: Sequence[float], second: Sequence[float]) -> bool:
    if len(first) != len(second):
        return False
    pairs = zip(first, second, strict=True)
    return all(a == b or abs(a - b) <= _NOISE * max(abs(a), abs(b)) for a, b in pairs)
