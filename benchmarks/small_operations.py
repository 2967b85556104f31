"""What single small operations cost under `%autograd_check on`, as hand-written loops feel it.

usage: python benchmarks/small_operations.py [--rounds N] [--json FILE] [NAME ...]

Each operation runs in a cell of a real shell: plainly, under a function mode that only calls
through (`floor`: what any recorder of this kind costs at least) and watched, in turns within one
process, so that a busy machine slows all of them alike.  Shown are microseconds of the process
(CPU), the fastest of all rounds, and the ratios to the plain run.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from shells import new_shell, run, write
from torch.overrides import TorchFunctionMode

#: What is timed.  `w` and `b` require a gradient, `x`, `p` and `buf` do not.
OPERATIONS = (
    "w.data -= 0.1 * g",
    "p[3] += x",
    "buf[2].item()",
    "x + 1",
    "x.shape",
    "w * x",
    "(w * x).sum()",
    "w ** 2",
    "1 - w",
    "h.detach()",
    "x.view(-1)",
    "loss.item()",
    "w.grad = None",
    "buf.zero_()",
    "nn.Parameter(g)",
)
_SETUP = """
w = torch.randn(4, 4, requires_grad=True)
g = torch.randn(4, 4)
x, p, buf = torch.randn(4), torch.randn(8, 4), torch.randn(5)
h = w * 2
loss = h.sum()
"""
_LOOP = """
def run(n):
    for _ in range(n):
        {operation}
"""
_CALLS = 300
_TIMED = f"""
run(10)
_begin = time.process_time()
run({_CALLS})
_seconds = time.process_time() - _begin
"""
_WAYS = {
    "plain": _TIMED,
    "floor": "with Through():" + _TIMED.replace("\n", "\n    "),
    "watched": _TIMED,
}
_WATCHED = "%autograd_check --no-verify on"


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


@dataclass(frozen=True)
class Row:
    """Microseconds of one operation, by way of running it."""

    operation: str
    plain: float
    floor: float
    watched: float


def measure(operation: str, rounds: int) -> Row:
    """The fastest of all rounds."""
    shell = new_shell()
    shell.run_line_magic("load_ext", "autograd_explain")
    shell.user_ns["Through"] = Through
    run(shell, "import time, torch\nfrom torch import nn")
    run(shell, _SETUP + _LOOP.format(operation=operation))
    best = dict.fromkeys(_WAYS, float("inf"))
    for _ in range(rounds):
        for way, cell in _WAYS.items():
            if way == "watched":
                run(shell, _WATCHED)
            run(shell, cell)
            best[way] = min(best[way], shell.user_ns["_seconds"] / _CALLS * 1e6)
            if way == "watched":
                run(shell, "%autograd_check off")
    return Row(operation, **best)


def show(row: Row) -> str:
    floor, watched = row.floor / row.plain, row.watched / row.plain
    return f"{row.operation:20} {row.plain:9.2f} {f'×{floor:.1f}':>7} {f'×{watched:.1f}':>8}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("operations", nargs="*", help=f"of: {', '.join(OPERATIONS)}")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--json", help="write the rows to this file")
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{'':20} {'plain µs':>9} {'floor':>7} {'watched':>8}")
    rows = []
    for operation in options.operations or OPERATIONS:
        rows.append(measure(operation, options.rounds))
        print(show(rows[-1]))
    write(rows, options.json)


if __name__ == "__main__":
    main()
