"""What a run left behind: gradients first, then the values that its names hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from .gradient_log import GradientLog
from .objects import Path, rank, spelled, walk
from .reference import Saved

MAX_COPIES = 4


@dataclass(frozen=True)
class TensorState:
    """A tensor of the reference with every path to it.

    `gradient` is its `.grad` at the end, `last` the one that its last backward left, where it has
    been cleared since, `stepped` the one that an optimizer used last.  `holds_gradient` tells
    whether `.grad` means anything for it.  `earlier` are values it had before a write which the
    reference kept from the backward: a rewrite that puts the written value elsewhere leaves one
    of these.  `None` for `value` means that it was too large to keep.
    """

    paths: tuple[Path, ...]
    holds_gradient: bool
    gradient: torch.Tensor | None
    last: torch.Tensor | None
    stepped: torch.Tensor | None
    value: torch.Tensor | None
    earlier: tuple[torch.Tensor, ...] = ()

    @property
    def name(self) -> str:
        return min((spelled(p) for p in self.paths), key=rank)


@dataclass(frozen=True)
class Snapshot:
    """The state to compare other runs with.

    `losses` are the scalar outputs of the backwards in order, `unreachable` the last gradients of
    tensors that only functions had names for,
    `unreachable_steps` those that an optimizer used last.  `complete` is False where a gradient
    was too large.
    """

    tensors: tuple[TensorState, ...] = ()
    numbers: Mapping[Path, Any] = field(default_factory=dict)
    losses: tuple[float, ...] = ()
    unreachable: Mapping[str, torch.Tensor] = field(default_factory=dict)
    unreachable_steps: Mapping[str, torch.Tensor] = field(default_factory=dict)
    complete: bool = True


def take_snapshot(
    namespace: Mapping[str, Any],
    ledger: GradientLog,
    overwritten: list[Saved],
    limit: int,
) -> Snapshot:
    """Copies of everything comparable, `limit` bytes of it."""
    paths: dict[int, list[Path]] = {}
    tensors: dict[int, torch.Tensor] = {}
    numbers: dict[Path, Any] = {}
    for path, value in walk(namespace):
        if isinstance(value, torch.Tensor):
            tensors[id(value)] = value
            paths.setdefault(id(value), []).append(path)
        else:
            numbers[path] = _copied(value)
    keeper = _Keeper(limit)
    gradients = {k: _gradients(t, ledger, keeper) for k, t in tensors.items()}
    reached = {id(g) for k in tensors for g in [ledger.of(tensors[k])] if g is not None}
    unreachable = {n: keeper.keep(g) for n, g in ledger.named().items() if id(g) not in reached}
    complete = not keeper.full
    states = tuple(
        TensorState(
            tuple(paths[key]),
            holds_gradient(tensor),
            *gradients[key],
            keeper.keep(tensor),
            _earlier(tensor, overwritten),
        )
        for key, tensor in tensors.items()
    )
    kept = {n: g for n, g in unreachable.items() if g is not None}
    steps = {n: keeper.keep(g) for n, g in ledger.named_steps().items() if n in kept}
    used = {n: g for n, g in steps.items() if g is not None}
    return Snapshot(states, numbers, tuple(ledger.losses), kept, used, complete)


def holds_gradient(tensor: torch.Tensor) -> bool:
    """Whether reading its `.grad` says something (and gives no warning)."""
    try:
        return tensor.requires_grad and (tensor.is_leaf or tensor.retains_grad)
    except RuntimeError:  # a view made under no_grad whose base was written since
        return False


def dense(tensor: torch.Tensor) -> torch.Tensor | None:
    """A tensor's values on the CPU, None where they cannot be compared."""
    try:
        found = tensor.detach()
        if found.device.type == "meta" or found.is_quantized or found.is_nested:
            return None
        found = found.to_dense() if found.layout != torch.strided else found
        return found.to("cpu").resolve_conj().resolve_neg()
    except (RuntimeError, NotImplementedError):
        return None


class _Keeper:
    """Copies tensors as long as they fit."""

    def __init__(self, limit: int) -> None:
        self.full = False
        self._left = limit

    def keep(self, tensor: torch.Tensor | None) -> torch.Tensor | None:
        if tensor is None:
            return None
        self._left -= tensor.numel() * tensor.element_size()
        if self._left < 0:
            self.full = True
            return None
        found = dense(tensor)
        return None if found is None else found.clone()


def _gradients(
    tensor: torch.Tensor, ledger: GradientLog, keeper: _Keeper
) -> tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor | None]:
    final = keeper.keep(tensor.grad) if holds_gradient(tensor) else None
    cleared = final is None or not bool(final.count_nonzero())
    last = keeper.keep(ledger.of(tensor)) if cleared else None
    return final, last, keeper.keep(ledger.stepped(tensor))


def _earlier(tensor: torch.Tensor, overwritten: list[Saved]) -> tuple[torch.Tensor, ...]:
    """The values this tensor's memory had when it was saved, where that was overwritten: as a
    whole before the first saving, and with each saved part."""
    found: list[torch.Tensor] = []
    mine = [s for s in overwritten if _same_memory(tensor, s.alias)]
    for whole in {id(s.whole): s.whole for s in mine if s.whole is not None}.values():
        found.append(_looking_at(whole.storage, tensor))
    found.extend(_with_saved(tensor, saved) for saved in mine[:MAX_COPIES])
    return tuple(found[:MAX_COPIES])


def _same_memory(first: torch.Tensor, second: torch.Tensor) -> bool:
    try:
        one, other = first.untyped_storage(), second.untyped_storage()
        return first.dtype == second.dtype and one.data_ptr() == other.data_ptr() != 0
    except (RuntimeError, NotImplementedError):
        return False


def _with_saved(tensor: torch.Tensor, saved: Saved) -> torch.Tensor:
    """`tensor` as it would be, had its memory still the saved values."""
    storage: Any = tensor.detach().untyped_storage()
    copied, alias = storage.clone(), saved.alias
    whole = torch.empty(0, dtype=tensor.dtype).set_(copied)
    whole.as_strided(alias.shape, alias.stride(), alias.storage_offset()).copy_(saved.copy)
    return _looking_at(copied, tensor)


def _looking_at(storage: Any, tensor: torch.Tensor) -> torch.Tensor:
    """`tensor` as it would be over this memory."""
    whole = torch.empty(0, dtype=tensor.dtype).set_(storage)
    return whole.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset()).clone()


def _copied(value: Any) -> Any:
    return value.copy() if hasattr(value, "copy") else value
