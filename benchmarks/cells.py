"""What watching adds to a single cell, however little the cell does.

usage: python benchmarks/cells.py [--rounds N] [--json FILE]

Each cell runs plainly, watched without a copy of the session (`--no-verify`) and watched as usual,
in turns within one process.  Shown are the medians of the process's CPU time, in milliseconds; a
copy of the session costs its own process some more.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import io
import json
import statistics
import time
from dataclasses import asdict, dataclass
from typing import Any

import torch
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

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
    config = Config({"HistoryManager": {"enabled": False}})
    shell: Any = InteractiveShell.instance(config=config)
    _run(shell, _SETUP)
    shell.run_line_magic("load_ext", "autograd_explain")
    took: dict[str, dict[str, list[float]]] = {d: {m: [] for m in _MODES} for d in CELLS}
    for number in range(rounds + 1):
        for mode, magic in _MODES.items():
            _run(shell, magic)
            for does, cell in CELLS.items():
                gc.collect()
                seconds = _run(shell, cell)
                if number:  # the first round imports
                    took[does][mode].append(seconds * 1e3)
    return [
        Row(does, cell, **{m: statistics.median(took[does][m]) for m in _MODES})
        for does, cell in CELLS.items()
    ]


def _run(shell: Any, cell: str) -> float:
    begin = time.process_time()
    with contextlib.redirect_stdout(io.StringIO()):
        shell.run_cell(cell, store_history=True).raise_error()
    return time.process_time() - begin


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
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump([asdict(row) for row in rows], file, indent=1)


if __name__ == "__main__":
    main()
