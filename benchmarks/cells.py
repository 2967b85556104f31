"""What watching adds to a single cell, however little the cell does.

usage: python benchmarks/cells.py [--rounds N] [--json FILE]

Each cell runs plainly, watched without a copy of the session (`--no-verify`) and watched as usual,
in turns within one process.  Shown are the medians of the process's CPU time, in milliseconds; a
copy of the session costs its own process some more.
"""

from __future__ import annotations

import argparse
import gc
import statistics
from dataclasses import dataclass

import torch
from shells import new_shell, run, write

_SETUP = """
import torch
from torch import nn
model = nn.Sequential(*[nn.Linear(32, 32) for _ in range(10)])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(16, 32)
numbers = [0.5 * n for n in range(1000)]
"""
#: By what they do.
CELLS = {
    "defines": "rate = 0.1",
    "reaches no tensor": "total = sum(n * n for n in numbers)",
    "computes without a graph": "y = x + 1",
    "makes a graph": "h = model(x)",
    "trains one step": (
        "optimizer.zero_grad(); loss = model(x).sum(); loss.backward(); optimizer.step()"
    ),
}
_MODES = {
    "plain": "%autograd_check off",
    "recorded": "%autograd_check --no-verify on",
    "watched": "%autograd_check on",
}


@dataclass(frozen=True)
class Row:
    """Milliseconds of one cell, by mode."""

    does: str
    cell: str
    plain: float
    recorded: float
    watched: float


def measure(rounds: int) -> list[Row]:
    """The medians of all rounds."""
    shell = new_shell()
    run(shell, _SETUP)
    shell.run_line_magic("load_ext", "autograd_explain")
    took: dict[str, dict[str, list[float]]] = {d: {m: [] for m in _MODES} for d in CELLS}
    for number in range(rounds + 1):
        for mode, magic in _MODES.items():
            run(shell, magic)
            for does, cell in CELLS.items():
                gc.collect()
                seconds = run(shell, cell)
                if number:  # the first round imports
                    took[does][mode].append(seconds * 1e3)
    return [
        Row(does, cell, **{m: statistics.median(took[does][m]) for m in _MODES})
        for does, cell in CELLS.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--json", help="write the rows to this file")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = measure(options.rounds)
    for row in rows:
        times = (f"{mode} {getattr(row, mode):6.2f} ms" for mode in _MODES)
        print(f"{row.does:24} {'   '.join(times)}")
    write(rows, options.json)


if __name__ == "__main__":
    main()
