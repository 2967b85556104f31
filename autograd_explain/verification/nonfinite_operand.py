"""Which operand of an operation makes its derivative infinite or undefined, and how far it has
to be moved: found by computing the operation alone, with other values at these elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from .plan import UNREPAIRED, CodeRange, Repair
from .tracked import tensors_in

#: How far from zero, and from another edge as a share of it, the operand is tried.
_FROM_ZERO = (1e-12, 1e-8, 1e-6, 1e-4)
_FROM_EDGE = (1e-6, 1e-4, 1e-2)
_MAX_ELEMENTS = 10_000_000


@dataclass(frozen=True, eq=False)
class Call:
    """A call of torch: what it got, the numbers of the nodes that it made, and where;
    `direct` in the user's own line."""

    func: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    versions: tuple[int, ...]
    first: int
    end: int
    frames: tuple[CodeRange, ...]
    direct: bool

    @property
    def name(self) -> str:
        return str(getattr(self.func, "__name__", ""))

    def made(self, number: int) -> bool:
        """Whether a node of this sequence number is the call's."""
        return self.first <= number < self.end

    @property
    def given(self) -> list[torch.Tensor]:
        return list(tensors_in((*self.args, *self.kwargs.values())))

    def version_of(self, tensor: torch.Tensor) -> int:
        """The version that an argument had at the call."""
        pairs = zip(self.given, self.versions, strict=False)
        return next((v for t, v in pairs if t is tensor), -1)

    def number_of(self, tensor: torch.Tensor) -> int:
        """The place of an argument among the positional ones, -1 where it has none."""
        return next((n for n, a in enumerate(self.args) if a is tensor), -1)


@dataclass(frozen=True)
class Operand:
    """The operand by its place among the arguments (-1: not known), the value at which the
    derivative is not finite, and what would make it finite."""

    number: int = -1
    value: str = ""
    repair: Repair = UNREPAIRED


def operand_of(call: Call, given: Sequence[Any]) -> Operand | None:
    """The operand to change; None where computing the call alone does not show it.

    `given` are the gradients that the call's results got, where its last node is the one."""
    quiet = torch.autograd.set_detect_anomaly(False)  # the trial is to end with its NaN
    with torch._C.DisableTorchFunctionSubclass(), torch.enable_grad(), quiet:
        try:
            return _operand(call, given)
        except Exception:  # an operation that cannot be computed alone
            return None


def _operand(call: Call, given: Sequence[Any]) -> Operand | None:
    if call.name.startswith("linalg_"):  # no element of a matrix is at fault alone
        return _matrix(call, given) if call.name in _SPECTRA and _is_unchanged(call) else None
    numbers = [n for n, a in enumerate(call.args) if _is_real(a)]
    held = {n: call.args[n].detach() for n in numbers}
    if not _is_unchanged(call) or sum(t.numel() for t in held.values()) > _MAX_ELEMENTS:
        return None
    trial = _Trial(call, given)
    wrong = trial.wrong(held)
    if not trial.by_element or not any(bool(mask.any()) for mask in wrong.values()):
        return None
    for number in numbers:
        mask = wrong[number]
        if bool(mask.any()):
            repair = _repair(trial, held, number, mask)
            if repair is not None:
                return Operand(number, _shown(held[number][mask]), repair)
    number = next((n for n in numbers if not bool(held[n].isfinite().all())), -1)
    value = _shown(held[number][~held[number].isfinite()]) if number >= 0 else ""
    return Operand(number, value)


def _matrix(call: Call, given: Sequence[Any]) -> Operand | None:
    """A square matrix of which two eigenvalues or singular values are equal: the derivative of the
    vectors divides by their difference (torch.linalg.eigh, Note on gradients)."""
    matrix = call.args[0].detach() if call.args and _is_real(call.args[0]) else None
    if matrix is None or not matrix.numel() or matrix.shape[-1] != matrix.shape[-2]:
        return None
    values = _SPECTRA[call.name](matrix)
    largest, small = float(values.abs().max()), torch.finfo(matrix.dtype).eps
    if not float(values.diff().abs().min()) <= 4 * small * matrix.shape[-1] * largest:
        return None
    step = f"{small**0.5 * (largest or 1.0):.0e}"
    diagonal = torch.arange(matrix.shape[-1]).diag().to(matrix)
    trial = _Trial(call, given)
    if trial.is_fine({0: matrix}) or not trial.is_fine({0: matrix + float(step) * diagonal}):
        return None
    return Operand(0, "", Repair(apart=step))


#: What is decomposed into vectors, and what gives the values alone.
_SPECTRA: Mapping[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "linalg_eigh": torch.linalg.eigvalsh,
    "linalg_svd": torch.linalg.svdvals,
}


def _is_real(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype.is_floating_point and not value.is_sparse


def _is_unchanged(call: Call) -> bool:
    return all(t._version == v for t, v in zip(call.given, call.versions, strict=True))


class _Trial:
    """Computes a call alone, with other values."""

    def __init__(self, call: Call, given: Sequence[Any]) -> None:
        self._call = call
        self._given = given
        self.by_element = False  #: whether each element of the results has one of the operands

    def wrong(self, held: dict[int, torch.Tensor]) -> dict[int, torch.Tensor]:
        """For each operand the elements whose gradient, or whose own result, is not finite."""
        leaves = {n: t.clone().requires_grad_() for n, t in held.items()}
        args = [leaves[n].clone() if n in leaves else a for n, a in enumerate(self._call.args)]
        result = self._call.func(*args, **self._call.kwargs)
        outputs = [t for t in tensors_in((result,)) if t.requires_grad]
        shape = torch.broadcast_tensors(*held.values())[0].shape  # type: ignore[no-untyped-call]
        self.by_element = all(t.shape == shape for t in outputs)
        gradients: list[Any] = []
        for weights in self._weights(outputs):
            found = torch.autograd.grad(
                outputs, [*leaves.values()], weights, retain_graph=True, allow_unused=True
            )
            gradients.append(dict(zip(leaves, found, strict=True)))
        masks = {n: torch.zeros_like(t, dtype=torch.bool) for n, t in held.items()}
        for found in gradients:
            for number, gradient in found.items():
                if gradient is not None:
                    masks[number] |= ~gradient.isfinite()
        lost = [~t.detach().isfinite() for t in outputs]
        for mask in masks.values():
            for other in lost:
                if bool(other.any()) and (mask.shape == other.shape or other.numel() == 1):
                    mask |= other
        return masks

    def infinity(self, mask: torch.Tensor) -> str:
        """The one infinity that the call gives at some elements; "" where it gives another, or
        where that depends on a second tensor."""
        if len(self._call.given) != 1:
            return ""
        with torch.no_grad():
            result = self._call.func(*self._call.args, **self._call.kwargs)
        if not isinstance(result, torch.Tensor) or result.shape != mask.shape:
            return ""
        shown = _shown(result[mask])
        return shown if shown in ("inf", "-inf") else ""

    def _weights(self, outputs: Sequence[torch.Tensor]) -> Iterator[list[torch.Tensor]]:
        """The gradients that came, where they fit; and ones."""
        came = [g for g in self._given if isinstance(g, torch.Tensor)]
        if [g.shape for g in came] == [t.shape for t in outputs]:
            yield came
        yield [torch.ones_like(t) for t in outputs]

    def is_fine(self, held: dict[int, torch.Tensor]) -> bool:
        return not any(bool(mask.any()) for mask in self.wrong(held).values())


def _repair(
    trial: _Trial, held: dict[int, torch.Tensor], number: int, mask: torch.Tensor
) -> Repair | None:
    """What makes the derivative finite; None where nothing done to this operand does."""
    operand = held[number]

    def works(values: torch.Tensor) -> bool:
        return trial.is_fine({**held, number: values})

    filled = (f for f in ("1.0", "0.0") if works(operand.masked_fill(mask, float(f))))
    fill = next(filled, "")
    floor, ceiling = _limits(operand, operand[mask], works)
    if not (fill or floor or ceiling):
        return None
    return Repair(fill, floor, ceiling, trial.infinity(mask))


def _limits(
    operand: torch.Tensor, bad: torch.Tensor, works: Callable[[torch.Tensor], bool]
) -> tuple[str, str]:
    """The bounds that keep it from an edge of its range, as text; "" where it needs none."""
    most = int(math.log(torch.finfo(operand.dtype).max))  # of what an `exp` is given
    if bool((bad > most).all()) and works(operand.clamp(max=most)):
        return "", str(most)
    low, high = float(operand.min()), float(operand.max())
    at_low, at_high = bad == low, bad == high
    if not bool((at_low | at_high).all()) or not bool(operand.isfinite().all()):
        return "", ""
    for step in _FROM_EDGE if low else _FROM_ZERO:
        floor = low + step * (abs(low) or 1.0)
        if bool(at_low.all()) and works(operand.clamp(min=floor)):
            return _number(floor), ""
    for step in _FROM_EDGE if high else _FROM_ZERO:
        ceiling = high - step * (abs(high) or 1.0)
        if bool(at_high.all()) and works(operand.clamp(max=ceiling)):
            return "", _number(ceiling)
        if low < high and works(operand.clamp(-ceiling if low == -high else low, ceiling)):
            return (_number(-ceiling) if low == -high else ""), _number(ceiling)
    return "", ""


def _number(value: float) -> str:
    return f"{value:.10g}"


def _shown(values: torch.Tensor) -> str:
    """A few numbers as text: the one that all are, or from where to where they lie."""
    if bool(values.isnan().any()):
        return "nan"
    low, high = float(values.min()) + 0.0, float(values.max()) + 0.0  # of -0.0, too, 0.0
    return f"{low:g}" if low == high else f"{low:.4g} … {high:.4g}"
