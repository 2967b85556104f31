"""Whether a run agrees with the reference, by the reference's own paths."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from .gradient_log import GradientLog
from .objects import Path, holds_none, is_array, is_number_list, resolve, spelled
from .snapshot import Snapshot, TensorState, dense, holds_gradient

#: Relative error and share of the largest magnitude that rounding may make of reordered sums.
_TOLERANCE = {
    torch.float64: (1e-7, 1e-10),
    torch.complex128: (1e-7, 1e-10),
    torch.float16: (1e-2, 1e-3),
    torch.bfloat16: (2e-2, 1e-2),
}
_DEFAULT = (1e-4, 1e-6)


@dataclass
class Agreement:
    """How a run compares: names of gradients that agree, of what differs, of what is missing.

    `zeros` counts agreeing gradients that are zero everywhere: those show nothing.  `written`
    names tensors that kept the value which the original program overwrote.  `leftovers` are
    differing gradients that remained after an optimizer had used agreeing ones: backwards in
    another order leave others behind.  `scale` is the largest gradient of all: what is smaller
    than its rounding is rounding (the bias before a batch norm).  `inexact` are numbers that agree
    but are not the same: a clock's, where the run is the very same program.  `worst` is the
    largest relative error of the agreeing ones.
    """

    gradients: list[str] = field(default_factory=list)
    differing: list[str] = field(default_factory=list)
    differing_values: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    leftovers: list[str] = field(default_factory=list)
    inexact: list[str] = field(default_factory=list)
    shown: dict[str, tuple[str, str, float]] = field(default_factory=dict)
    scale: float = 0.0
    zeros: int = 0
    values: int = 0
    worst: float = 0.0


def compare(snapshot: Snapshot, namespace: Mapping[str, Any], ledger: GradientLog) -> Agreement:
    """Compare the run that ended in `namespace` with the reference."""
    result = Agreement(scale=_largest_gradient(snapshot))
    for state in snapshot.tensors:
        _compare_tensor(state, namespace, ledger, result)
    for path, value in snapshot.numbers.items():
        found = resolve(path, namespace)
        _compare_emptied(path, namespace, result)
        if found is not None:
            result.values += 1
            if not numbers_agree(value, found):
                result.differing_values.append(spelled(path))
            elif not _identical(value, found):
                result.inexact.append(spelled(path))
    named = ledger.named(every=True)
    for name, gradient in snapshot.unreachable.items():
        _compare_gradient(f"{name}.grad", gradient, named.get(name), result)
    stepped = ledger.named_steps(every=True)
    for name, gradient in snapshot.unreachable_steps.items():
        used = stepped.get(name)
        if used is None or not agree(gradient, used, result.scale):
            _differ(f"{name}.grad", gradient, used, math.inf, result)
    _compare_losses(snapshot.losses, ledger.losses, result)
    return result


def _largest_gradient(snapshot: Snapshot) -> float:
    given = [g for s in snapshot.tensors for g in (s.gradient, s.last, s.stepped) if g is not None]
    sizes = [float(g.abs().max()) for g in given if g.numel()]
    return max((size for size in sizes if math.isfinite(size)), default=0.0)


def _compare_tensor(
    state: TensorState, namespace: Mapping[str, Any], ledger: GradientLog, result: Agreement
) -> None:
    found = {id(t): t for p in state.paths for t in [resolve(p, namespace)] if _is_tensor(t)}
    name = state.name
    expected = state.gradient if state.gradient is not None else state.last
    if not found and expected is not None:
        result.missing.append(f"{name}.grad")
    for path in state.paths:
        _compare_emptied(path, namespace, result)
    for tensor in found.values():
        if not _same_steps(state, tensor, ledger, result):
            _compare_gradients(state, tensor, ledger, result)
            _compare_used(state, tensor, ledger, result)
        if not _moved_by_rounding(state, tensor, ledger, result):
            _compare_value(state, name, tensor, result)


def _moved_by_rounding(
    state: TensorState, tensor: torch.Tensor, ledger: GradientLog, result: Agreement
) -> bool:
    """Whether an optimizer stepped a leaf by a gradient that is nothing but rounding, in both runs:
    Adam makes whole steps of it (the bias of an attention's keys, whose gradient is zero)."""
    used = (state.stepped, ledger.stepped(tensor))
    sizes = [float(g.abs().max()) for g in used if g is not None and g.numel()]
    if len(sizes) < len(used) or not tensor.is_floating_point():
        return False
    return max(sizes) <= torch.finfo(tensor.dtype).eps * result.scale and max(sizes) > 0


def _compare_emptied(path: Path, namespace: Mapping[str, Any], result: Agreement) -> None:
    """A None where the reference has a value.  A name that is gone says nothing: what held a step
    of the computation may be needed no more."""
    if holds_none(path, namespace):
        result.differing_values.append(spelled(path))


def _same_steps(
    state: TensorState, tensor: torch.Tensor, ledger: GradientLog, result: Agreement
) -> bool:
    """Whether the gradient at the end differs, but what optimizers used and made does not."""
    used, actual = ledger.stepped(tensor), tensor.grad if holds_gradient(tensor) else None
    if state.stepped is None or used is None or not agree(state.stepped, used, result.scale):
        return False
    if state.value is None or not agree(state.value, tensor):
        return False
    if state.gradient is None or (
        actual is not None and agree(state.gradient, actual, result.scale)
    ):
        return False
    result.leftovers.append(f"{state.name}.grad")
    return True


def _compare_gradients(
    state: TensorState, tensor: torch.Tensor, ledger: GradientLog, result: Agreement
) -> None:
    name = f"{state.name}.grad"
    actual = tensor.grad if holds_gradient(tensor) else None
    if state.gradient is None and actual is not None and state.holds_gradient:
        _differ(name, None, actual, math.inf, result)
    if state.last is not None:
        _compare_gradient(name, state.last, ledger.of(tensor), result)
    if state.gradient is not None:
        _compare_gradient(name, state.gradient, actual, result)


def _compare_used(
    state: TensorState, tensor: torch.Tensor, ledger: GradientLog, result: Agreement
) -> None:
    """What is left in `.grad` may agree although the optimizer used something else before."""
    used = ledger.stepped(tensor)
    if state.stepped is not None and (used is None or not agree(state.stepped, used, result.scale)):
        _differ(f"{state.name}.grad", state.stepped, used, math.inf, result)


def _compare_gradient(
    name: str, expected: torch.Tensor, actual: torch.Tensor | None, result: Agreement
) -> None:
    error = None if actual is None else relative_error(expected, actual, result.scale)
    if error is None or error > 1.0:
        _differ(name, expected, actual, math.inf if error is None else error, result)
        return
    if name not in result.gradients:
        result.gradients.append(name)
        result.zeros += not bool(expected.count_nonzero())
    result.worst = max(result.worst, error * tolerance(expected.dtype)[0])


def _differ(
    name: str,
    expected: torch.Tensor | None,
    actual: torch.Tensor | None,
    error: float,
    result: Agreement,
) -> None:
    if name not in result.differing:
        result.differing.append(name)
        result.shown[name] = (brief(actual), brief(expected), error)


def _compare_value(state: TensorState, name: str, tensor: torch.Tensor, result: Agreement) -> None:
    if state.value is None:
        return
    result.values += 1
    if agree(state.value, tensor):
        return
    if any(agree(value, tensor) for value in state.earlier):
        result.written.append(name)
    else:
        result.differing_values.append(name)


def _compare_losses(expected: tuple[float, ...], actual: list[float], result: Agreement) -> None:
    """The same backwards, in whatever order, must have started from the same numbers."""
    if len(expected) == len(actual):
        pairs = zip(sorted(expected, key=_order), sorted(actual, key=_order), strict=True)
        if not all(numbers_agree(e, a) for e, a in pairs):
            result.differing_values.append("loss")


def _order(value: float) -> float:
    return -math.inf if math.isnan(value) else value


def agree(expected: torch.Tensor, actual: torch.Tensor, scale: float = 0.0) -> bool:
    error = relative_error(expected, actual, scale)
    return error is not None and error <= 1.0


def relative_error(
    expected: torch.Tensor, actual: torch.Tensor, scale: float = 0.0
) -> float | None:
    """The largest error as a share of what is tolerated; None where the two cannot be equal.
    Both were computed from numbers as large as `scale`."""
    found = dense(actual)
    if found is None or found.shape != expected.shape or found.dtype != expected.dtype:
        return None
    if not (expected.is_floating_point() or expected.is_complex()):
        return 0.0 if torch.equal(expected, found) else None
    if expected.numel() == 0:
        return 0.0
    relative, floor = tolerance(expected.dtype)
    wide = torch.complex128 if expected.is_complex() else torch.float64
    one, other = expected.to(wide), found.to(wide)
    same = (one == other) | ((one != one) & (other != other))
    if bool(same.all()):
        return 0.0
    finite = torch.isfinite(one) & torch.isfinite(other)
    if not bool((same | finite).all()):
        return None
    size = one.abs()
    largest = float(size[finite].max()) if bool(finite.any()) else 0.0
    rounding = torch.finfo(expected.dtype).eps * scale
    error = (one - other).abs() / (relative * size + floor * largest + rounding)
    return float(torch.where(same, torch.zeros_like(error), error).max())


def tolerance(dtype: torch.dtype) -> tuple[float, float]:
    return _TOLERANCE.get(dtype, _DEFAULT)


def numbers_agree(expected: Any, actual: Any) -> bool:
    """Numbers, lists of numbers and numpy arrays; single precision may be behind a float."""
    if is_array(expected):
        return is_array(actual) and _arrays_agree(expected, actual)
    if is_number_list(expected):
        if not isinstance(actual, (list, tuple)) or len(actual) != len(expected):
            return False
        return all(numbers_agree(e, a) for e, a in zip(expected, actual, strict=True))
    if isinstance(expected, bool) or isinstance(actual, bool):
        return expected is actual
    if isinstance(expected, int) and isinstance(actual, int):
        return expected == actual
    if not isinstance(actual, (int, float, complex)):
        return False
    if expected == actual or (expected != expected and actual != actual):
        return True
    return bool(abs(expected - actual) <= 1e-4 * abs(expected) + 1e-9)


def _identical(expected: Any, actual: Any) -> bool:
    if is_array(expected):
        return is_array(actual) and bool(expected.tobytes() == actual.tobytes())
    return repr(expected) == repr(actual)


def _arrays_agree(expected: Any, actual: Any) -> bool:
    import numpy

    if expected.shape != actual.shape or expected.dtype.kind != actual.dtype.kind:
        return False
    if expected.dtype.kind in "biu":
        return bool((expected == actual).all())
    return bool(numpy.allclose(expected, actual, rtol=1e-4, atol=1e-9, equal_nan=True))


def brief(tensor: torch.Tensor | None) -> str:
    """A value as short text: "1", "[1, 0.5, …]", "None"."""
    found = None if tensor is None else dense(tensor)
    if found is None:
        return "None"
    numbers = found.reshape(-1)
    if numbers.numel() and bool((numbers == numbers[0]).all()):
        return _figure(numbers[0].item())
    shown = ", ".join(_figures(numbers))
    return f"[{shown}]"


def _figures(numbers: torch.Tensor) -> Iterator[str]:
    for value in numbers[:4].tolist():
        yield _figure(value)
    if numbers.numel() > 4:
        yield "…"


def _figure(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)
