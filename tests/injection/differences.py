"""Finite differences of a program's last loss: a judge that knows no right program."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

_STEP = 1e-6
#: In double precision a central difference of this step is right to nine digits; gradients of
#: what the program computes in between differ where one is wrong, and then by far more.
_TOLERANCE = 1e-5


@dataclass
class _Run:
    """One run in double precision.  Leaves are moved after the optimizer's last but one step, or
    before the last cell where it makes none or one."""

    leaves: tuple[str, ...]
    move_after: int = -1
    moved: dict[str, torch.Tensor] = field(default_factory=dict)
    steps: int = 0
    loss: float = 0.0
    space: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})

    def play(self, cells: tuple[str, ...] | list[str]) -> None:
        with _double(), self._noting(), redirect_stdout(io.StringIO()):
            for number, text in enumerate(cells, 1):
                if number == len(cells) and self.move_after == 0:
                    self._move()
                exec(compile(text, f"<judged {number}>", "exec"), self.space)

    def leaf(self, name: str) -> torch.Tensor:
        return eval(name, self.space)

    def _move(self) -> None:
        for name, by in self.moved.items():
            self.leaf(name).data.add_(by)

    def _stepped(self, *_: Any) -> None:
        self.steps += 1
        if self.steps == self.move_after:
            self._move()

    @contextmanager
    def _noting(self) -> Iterator[None]:
        original = torch.Tensor.backward
        hook = register_optimizer_step_post_hook(self._stepped)

        def backward(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            self.loss = float(tensor.detach().sum())
            return original(tensor, *args, **kwargs)

        torch.Tensor.backward = backward  # type: ignore[method-assign]
        try:
            yield
        finally:
            torch.Tensor.backward = original  # type: ignore[method-assign]
            hook.remove()


@contextmanager
def _double() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


def contradicted(cells: tuple[str, ...] | list[str], grads: tuple[str, ...]) -> tuple[str, ...]:
    """The gradients that are not the derivative of the last loss, by the names of their leaves."""
    leaves = tuple(name.removesuffix(".grad") for name in grads)
    plain = _Run(leaves)
    plain.play(cells)
    found = []
    for number, name in enumerate(leaves):
        leaf = plain.leaf(name)
        direction = torch.randn(
            leaf.shape, generator=torch.Generator().manual_seed(number), dtype=torch.float64
        )
        told = 0.0 if leaf.grad is None else float((leaf.grad * direction).sum())
        rise = [_loss(cells, plain, name, direction * by) for by in (_STEP, -_STEP)]
        seen = (rise[0] - rise[1]) / (2 * _STEP)
        if not abs(seen - told) <= _TOLERANCE * (1 + abs(told)):
            found.append(name)
    return tuple(found)


def _loss(cells: Any, plain: _Run, name: str, by: torch.Tensor) -> float:
    run = _Run(plain.leaves, max(0, plain.steps - 1), {name: by})
    run.play(cells)
    return run.loss
