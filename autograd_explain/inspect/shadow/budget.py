"""What a walk may cost."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import torch

from .unknown import words


class RunEnded(BaseException):
    """The walk stops here; no `except` of the user's may hold it up."""


class Over(RunEnded, GeneratorExit):
    """Twin code runs though the walk is over; a generator that is being closed ends silently."""


class FailureReached(RunEnded):
    """The walk met the failure itself."""


class NotMade(RunEnded):
    """Making an object of a library's met what is not known; the walk goes on without."""


class OutOfBudget(RunEnded):
    """The walk has used up its steps or its time."""


class TooBig(RunEnded):
    """Stand-ins with numbers in them cost too much for this program."""


@dataclass(frozen=True)
class RunLimits:
    """Bounds of a walk.

    Counted in weighted operations, so that the same program gives the same walk everywhere;
    `seconds` (of this thread's own time) is the last resort.  `history` is the share of the cells
    before the failing one.  `elements` and `slow` bound one stand-in and one operation, `bytes`
    all texts and arrays together.
    """

    steps: int = 40_000
    history: float = 0.6
    loop: int = 8_000
    iterations: int = 3
    seconds: float = 0.8
    elements: int = 400_000
    slow: float = 0.04
    bytes: int = 256 << 20


class RunBudget:
    """Counts what a walk spends and ends it where that is too much."""

    def __init__(self, limits: RunLimits, big: bool) -> None:
        self.limits = limits
        self.spent = 0
        self._big = big
        self._elements = 0
        self._bytes = 0
        self._start = time.thread_time()
        self._share = limits.history
        self._closed = False
        self._purse = sys.maxsize

    def close(self) -> None:
        """After the walk nothing of its twin code (a `__del__`, a property) runs any more."""
        self._closed = True

    @property
    def left(self) -> int:
        """The steps that may still be spent."""
        return max(int(self._share * self.limits.steps) - self.spent, 0)

    def open(self) -> None:
        """The failing cell begins: it may use all that is left."""
        self._share = 1.0

    def charge(self, weight: int) -> None:
        """Counts what must not be interrupted: the next step that is spent may be too much."""
        self.spent += weight

    @contextmanager
    def purse(self, steps: int | None) -> Iterator[None]:
        """Within this many steps, if any: what takes more is given up, and the walk goes on."""
        outer = self._purse
        if steps is not None:
            self._purse = min(outer, self.spent + steps)
        try:
            yield
        finally:
            self._purse = outer

    def spend(self, weight: int) -> None:
        self.spent += weight
        if self._closed:
            raise Over
        if self.spent > self._purse:
            raise NotMade
        if self.spent > self._share * self.limits.steps:
            raise OutOfBudget
        if self.spent % 64 < weight and self.seconds > self._share * self.limits.seconds:
            raise OutOfBudget

    @contextmanager
    def uncounted(self) -> Iterator[None]:
        """Work that the length of the text bounds, not what it does."""
        started = time.thread_time()
        try:
            yield
        finally:
            self._start += time.thread_time() - started

    @property
    def seconds(self) -> float:
        return time.thread_time() - self._start

    def foresee(self, op: str, function: Any, values: tuple[Any, ...]) -> bool:
        """Whether an operation may run: one whose result is too large does not.

        A walk with numbers ends there, so that nothing large is ever allocated.
        """
        if self._big and function_root(function) != "numpy":
            return True
        if expected_elements(op, function, values) <= self.limits.elements:
            return True
        if not self._big:
            raise TooBig
        return False

    def measure(self, result: Any, seconds: float) -> None:
        """Ends a walk with numbers that has become a computation."""
        if self._big or not isinstance(result, torch.Tensor):
            return
        count = result.numel()
        self._elements += count
        if count > self.limits.elements or self._elements > 20 * self.limits.elements:
            raise TooBig
        if seconds > self.limits.slow and count > 4_000:
            raise TooBig

    def produce(self, result: Any) -> None:
        """Ends a walk that makes many texts and arrays, each small enough."""
        if type(result) in _TEXTS:
            self._bytes += len(result)
        elif type(result).__module__ == "numpy":
            self._bytes += int(getattr(result, "nbytes", 0))
        if self._bytes > self.limits.bytes:
            raise OutOfBudget

    def is_long(self, start: int) -> bool:
        """Whether a loop that began at `start` has had its share."""
        share = self.limits.loop if self.spent < self._share * self.limits.steps / 2 else 0
        return self.spent - start > share


_FACTORIES = words(
    """zeros ones empty full randn rand randint randperm arange linspace eye normal repeat tile
    new_zeros new_ones new_empty new_full uniform standard_normal random choice permutation
    expand_dims broadcast_to meshgrid triu_indices tril_indices one_hot logspace kron outer
    repeat_interleave random_sample integers"""
)
_PRODUCTS = frozenset(("matmul", "mm", "bmm", "imatmul"))
_PAIRS = frozenset(("kron", "outer", "cdist", "ger", "tensordot", "einsum"))
_BROADCAST = frozenset(("add", "sub", "mul", "truediv", "div", "pow", "where", "eq", "lt", "gt"))


def function_root(function: Any) -> str:
    """The package a function or a bound method belongs to."""
    owner = getattr(function, "__self__", None)
    kind = owner if isinstance(owner, type) else type(owner)
    module = getattr(function, "__module__", None) or kind.__module__
    return str(module).partition(".")[0]


def expected_elements(op: str, function: Any, values: tuple[Any, ...]) -> int:
    """How many elements an operation makes, as far as that can be told before it runs."""
    module = isinstance(function, type) and issubclass(function, torch.nn.Module)
    if op in _FACTORIES or module:
        return _product(values)
    tensors = [v for v in values if isinstance(v, torch.Tensor)]
    work = expected_work(op, function, tensors)
    if work > _WORK:
        return work
    if len(tensors) < 2 or max(t.numel() for t in tensors) < 2_000:
        return 0
    a, b = tensors[0], tensors[1]
    if op in _PRODUCTS and a.dim() and b.dim() > 1:
        return int(a.numel() // max(a.shape[-1], 1) * b.shape[-1])
    if op in _PAIRS:
        return int(a.numel() * b.numel() // 16)
    if op in _BROADCAST:
        try:
            shape = torch.broadcast_shapes(a.shape, b.shape)  # type: ignore[no-untyped-call]
            return int(shape.numel())
        except RuntimeError:
            return 0
    return 0


_WORK = 40_000_000  # multiplications in one operation
_DECOMPOSITIONS = words(
    """svd svdvals eig eigh eigvals eigvalsh qr inv pinv det slogdet lstsq solve cholesky
    matrix_exp pca_lowrank lu lu_factor matrix_rank cond"""
)


def expected_work(op: str, function: Any, tensors: list[torch.Tensor]) -> int:
    """About how many multiplications an operation takes, where that grows faster than its size."""
    if not tensors:
        return 0
    first = tensors[0]
    if op.removeprefix("linalg_") in _DECOMPOSITIONS:
        return int(10 * first.numel() ** 1.5)
    weight = getattr(function, "weight", None)
    weight = tensors[1] if weight is None and len(tensors) > 1 else weight
    if not isinstance(weight, torch.Tensor) or weight.dim() < 2 or not weight.shape[0]:
        return 0
    if op.startswith("conv"):
        return int(first.numel() // max(weight.shape[1], 1) * weight.numel() // weight.shape[0])
    return int(first.numel() * weight.shape[0]) if op == "linear" else 0


def _product(values: tuple[Any, ...]) -> int:
    """The size that the numbers among some arguments ask for."""
    found = 1
    for value in values:
        if isinstance(value, (tuple, list)) and len(value) < 16:
            found *= max(_product(tuple(value)), 1)
        elif isinstance(value, torch.Tensor):
            found *= max(value.numel(), 1)
        elif type(value) is int and value > 0:
            found *= value
    return found


def has_wide_field(text: str | bytes) -> bool:
    """Whether a format asks for a field of a hundred million characters or more."""
    digits = longest = 0
    for character in text if isinstance(text, str) else text.decode("latin-1"):
        digits = digits + 1 if character.isdigit() else 0
        longest = max(longest, digits)
    return longest > 8


_TEXTS = (str, bytes, bytearray)
_SEQUENCES = (list, tuple, str, bytes, bytearray, deque, range)


def too_big(name: str, left: Any, right: Any) -> bool:
    """Whether plain Python arithmetic would take too long or make too much."""
    if name == "pow" and isinstance(right, int) and isinstance(left, Fraction):
        return abs(right) > 4096
    if name == "mod" and isinstance(left, (str, bytes)):
        return has_wide_field(left)
    if isinstance(left, int) and isinstance(right, int):
        if name == "pow":
            return abs(right) > 64 or left.bit_length() * max(right, 0) > 4096
        return name == "lshift" and right > 4096
    if name == "mul":
        for items, count in ((left, right), (right, left)):
            if isinstance(items, _SEQUENCES) and isinstance(count, int):
                return len(items) * count > 100_000
    return False
