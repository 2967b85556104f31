"""What single small operations cost under `%autograd_check on`, as hand-written loops feel it.

usage: python benchmarks/small_operations.py [--rounds N] [NAME ...]

Each operation runs plainly, under a function mode that only calls through (`floor`: what any
recorder of this kind costs at least) and watched, in turns within one process, so that a busy
machine slows all of them alike.  Shown are microseconds of the process (CPU), the fastest of all
rounds, and the ratios to the plain run.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from autograd_explain.program import Program
from autograd_explain.record import Recording

#: By name: what is timed.  `w` and `b` require a gradient, `x`, `p` and `buf` do not.
OPERATIONS = {
    "w.data -= 0.1 * g": "w.data -= 0.1 * g",
    "p[3] += x": "p[3] += x",
    "buf[2].item()": "buf[2].item()",
    "x + 1": "x + 1",
    "x.shape": "x.shape",
    "w * x": "w * x",
    "(w * x).sum()": "(w * x).sum()",
    "h.detach()": "h.detach()",
    "x.view(-1)": "x.view(-1)",
    "w.grad = None": "w.grad = None",
    "buf.zero_()": "buf.zero_()",
}
_SETUP = """
w = torch.randn(4, 4, requires_grad=True)
g = torch.randn(4, 4)
x, p, buf = torch.randn(4), torch.randn(8, 4), torch.randn(5)
h = w * 2
"""
_LOOP = """
def run(n):
    for _ in range(n):
        {operation}
"""
_CALLS = 300


class Through(TorchFunctionMode):
    """The least that a function mode can do."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        return func(*args) if kwargs is None else func(*args, **kwargs)


def measure(operation: str, rounds: int) -> dict[str, float]:
    """Microseconds a call, by way of running it."""
    names: dict[str, Any] = {"torch": torch, "__name__": "__main__"}
    text = _SETUP + _LOOP.format(operation=operation)
    exec(compile(text, "<cell>", "exec"), names)
    recording = Recording()
    ways: dict[str, Callable[[], AbstractContextManager[Any]]] = {
        "plain": nullcontext,
        "floor": Through,
        "watched": lambda: recording.watching(_Cell(), 1),
    }
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(rounds):
        for way, context in ways.items():
            with context():
                names["run"](10)
                started = time.process_time()
                names["run"](_CALLS)
                best[way] = min(best[way], time.process_time() - started)
    return {way: seconds / _CALLS * 1e6 for way, seconds in best.items()}


class _Cell(Program):
    """A program of which the timed loop is the only code."""

    def is_user_code(self, filename: str) -> bool:
        return filename == "<cell>"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("operations", nargs="*", help=f"of: {', '.join(OPERATIONS)}")
    parser.add_argument("--rounds", type=int, default=30)
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{'':20} {'plain µs':>9} {'floor':>7} {'watched':>8}")
    for name in options.operations or OPERATIONS:
        took = measure(OPERATIONS[name], options.rounds)
        floor, watched = took["floor"] / took["plain"], took["watched"] / took["plain"]
        print(f"{name:20} {took['plain']:9.2f} {f'×{floor:.1f}':>7} {f'×{watched:.1f}':>8}")


if __name__ == "__main__":
    main()
