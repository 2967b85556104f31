"""Leaves that a cell has left with a gradient, or with values, that are not finite."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ..observe.tensor_facts import is_plain, storage, unseen, version
from .finding import CandidateFault, Mark, TimeShare, Weak, weak
from .parameter_owners import live

#: Numbers looked at after a cell: some 50 ms.
_MAX_NUMBERS = 50_000_000
_MAX_AT_STEPS = 20


@dataclass(frozen=True)
class _AtStep:
    """Parameters that a step left without finite values, and the backward before it."""

    parameters: tuple[Weak, ...]
    shapes: tuple[str, ...]
    kind: str
    backward: Mark


@dataclass
class NonFiniteLeaves:
    """Remembers which were found, so that a later cell is not blamed for them.

    Parameters that live in a function are gone when it has returned: they are looked at after
    steps, as far as a share of the time allows.
    """

    _lost: dict[int, Weak] = field(default_factory=dict)
    _told: dict[int, tuple[Weak, int, int]] = field(default_factory=dict)
    _at_steps: dict[int, _AtStep] = field(default_factory=dict)  #: by the first parameter
    _looks: TimeShare = field(default_factory=lambda: TimeShare(share=0.003, free=20))

    def begin(self) -> None:
        """A cell begins."""
        self._at_steps.clear()

    def stepped(self, parameters: list[Tensor], backward: Mark) -> None:
        """What a step has left."""
        if not parameters or not self._looks.allows():
            return
        with self._looks, unseen():
            kinds = [(t, _kind(t)) for t in _small_enough(parameters)]
        lost = [(t, kind) for t, kind in kinds if kind]
        self._at_steps.pop(id(parameters[0]), None)
        if lost and len(self._at_steps) < _MAX_AT_STEPS:
            self._at_steps[id(parameters[0])] = _AtStep(
                tuple(weak(t) for t, _ in lost),
                tuple(str(list(t.shape)) for t, _ in lost),
                _worst(kind for _, kind in lost),
                backward,
            )

    def left_behind(self) -> Iterator[CandidateFault]:
        """A finding, where nothing is left of what steps made so: no other look finds it."""
        gone = [s for s in self._at_steps.values() if all(w() is None for w in s.parameters)]
        for step in gone[:1]:
            evidence = {
                "parameters": step.parameters,
                "shapes": step.shapes,
                "count": len(step.parameters),
                "kind": step.kind,
            }
            yield CandidateFault("nonfinite-gradient", {"backward": (step.backward,)}, evidence)

    def look(
        self, leaves: Iterable[Tensor], namespace: Mapping[str, Any], backward: Mark
    ) -> Iterator[CandidateFault]:
        """A finding, where a backward of the cell has left such; scaled losses may overflow."""
        with unseen():
            found = [(t, *self._state(t)) for t in _small_enough(leaves)]
        new = [(t, kind) for t, kind, lost in found if kind and not self._is_known(t, lost)]
        self._lost = {id(t): weak(t) for t, _, lost in found if lost}
        self._told = {
            id(t): (weak(t), storage(t.grad), version(t.grad))
            for t, kind, _ in found
            if kind and t.grad is not None
        }
        overflowed = all(id(t) not in self._lost for t, _ in new)
        if new and not (overflowed and _is_scaled(namespace)):
            evidence = {
                "parameters": tuple(weak(t) for t, _ in new),
                "count": len(new),
                "kind": _worst(kind for _, kind in new),
            }
            yield CandidateFault("nonfinite-gradient", {"backward": (backward,)}, evidence)

    def _state(self, leaf: Tensor) -> tuple[str, bool]:
        """What is wrong with it ("nan", "inf", ""), and whether its own values are."""
        lost = _kind(leaf)
        given = _kind(leaf.grad) if leaf.grad is not None else ""
        return given or lost, bool(lost)

    def _is_known(self, leaf: Tensor, lost: bool) -> bool:
        earlier = self._lost.get(id(leaf))
        if lost and earlier is not None and earlier() is leaf:
            return True
        told = self._told.get(id(leaf))
        if told is None or told[0]() is not leaf or leaf.grad is None:
            return False
        return told[1:] == (storage(leaf.grad), version(leaf.grad))


def _is_scaled(namespace: Mapping[str, Any]) -> bool:
    """Whether the program has a scaler, which lets its losses overflow."""
    return next(live(namespace, (torch.amp.GradScaler,)), None) is not None


def _worst(kinds: Iterable[str]) -> str:
    return "nan" if "nan" in kinds else "inf"


def _small_enough(leaves: Iterable[Tensor]) -> Iterator[Tensor]:
    """As many as can be looked at, small ones first: what is lost spreads."""
    left = _MAX_NUMBERS
    plain = (t for t in leaves if is_plain(t) and t.layout == torch.strided)
    for leaf in sorted(plain, key=lambda t: t.numel()):
        left -= 2 * leaf.numel()
        if left < 0:
            return
        yield leaf


def _kind(tensor: Tensor) -> str:
    if not is_plain(tensor) or tensor.layout != torch.strided or not tensor.dtype.is_floating_point:
        return ""
    if tensor.device.type == "meta" or bool(tensor.sum().isfinite()):
        return ""
    if bool(tensor.isnan().any()):
        return "nan"
    return "inf" if bool(tensor.isinf().any()) else ""
