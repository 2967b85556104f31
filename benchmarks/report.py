"""Writes docs/benchmarks.md and its picture from what the other scripts of this folder measured.

usage: python benchmarks/report.py OVERHEAD.json SMALL_OPERATIONS.json LOOPS.json CELLS.json
       EXPLAIN.json [--docs FOLDER]
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import IPython
import torch
from workloads import WORKLOADS

import autograd_explain

Row = dict[str, Any]
#: Labels and colours (Okabe and Ito's, told apart by everyone).
_MODES = {
    "check": ("recording", "#0072B2"),
    "anomaly": ("anomaly mode, check_nan=False", "#E69F00"),
    "anomaly_nan": ("anomaly mode", "#D55E00"),
}
_LEFT, _BAR, _GAP, _WIDTH = 110, 16, 26, 720
_LONGEST = 3.0  #: ratios above this are cut off, and say so


def chart(rows: list[Row]) -> str:
    """Bars of the ratios to the plain run, readable on light and dark ground."""
    height = 60 + len(rows) * (len(_MODES) * _BAR + _GAP)
    body = "\n".join([*_legend(), *_axis(height), *_bars(rows)])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'aria-label="Time of a training step relative to a plain run" '
        f'font-family="sans-serif" font-size="12">\n'
        f'<rect width="100%" height="100%" fill="#ffffff"/>\n{body}\n</svg>\n'
    )


def _x(ratio: float) -> float:
    return _LEFT + (min(ratio, _LONGEST) - 1) / (_LONGEST - 1) * (_WIDTH - _LEFT - 60)


def _legend() -> Iterator[str]:
    x = _LEFT
    for label, colour in _MODES.values():
        yield f'<rect x="{x}" y="10" width="12" height="12" fill="{colour}"/>'
        yield f'<text x="{x + 18}" y="20">{escape(label)}</text>'
        x += 40 + 7 * len(label)


def _axis(height: int) -> Iterator[str]:
    for step in range(5):
        ratio = 1 + step / 2
        x = _x(ratio)
        yield f'<path d="M{x:.1f} 34V{height - 20}" stroke="#cccccc"/>'
        yield f'<text x="{x:.1f}" y="{height - 6}" text-anchor="middle">×{ratio:g}</text>'


def _bars(rows: list[Row]) -> Iterator[str]:
    y = 40
    for row in rows:
        middle = y + len(_MODES) * _BAR / 2 + 4
        name = escape(row["workload"])
        yield f'<text x="{_LEFT - 8}" y="{middle:.0f}" text-anchor="end">{name}</text>'
        for mode, (_, colour) in _MODES.items():
            ratio = row["ratios"][mode]["median"]
            end = _x(ratio)
            width = max(end - _x(1), 1)
            yield (
                f'<rect x="{_LEFT}" y="{y}" width="{width:.1f}" height="{_BAR - 3}" '
                f'fill="{colour}"/><text x="{end + 5:.1f}" y="{y + 11}">×{ratio:.2f}</text>'
            )
            y += _BAR
        y += _GAP


def page(
    overhead: list[Row], small: list[Row], loops: list[Row], cells: list[Row], explain: list[Row]
) -> str:
    """The page: tables, the picture, and how it was measured."""
    return f"""# Benchmarks

Measured on {datetime.date.today():%Y-%m-%d}: {_machine()}; Python {platform.python_version()},
PyTorch {torch.__version__.split("+")[0]} (CPU, one thread), IPython {IPython.__version__},
autograd_explain {autograd_explain.__version__}.  Made by `overhead.py`, `small_operations.py`,
`loops.py`, `cells.py`, `explain.py` and `report.py` in `benchmarks/`.  Times depend on the machine,
and on a shared one they vary by a fifth; the ratios are of runs that take turns within one process.

## Recording

`%autograd_check on` beside a plain run and beside PyTorch's anomaly mode, as the time of a training
step relative to the plain run: the median of rounds in which all modes take turns in one process,
with quartiles.  The losses are the same to the last bit.

![Time of a training step relative to a plain run](benchmarks/overhead.svg)

{_overhead_table(overhead)}

The last columns are the recording's extra time as a share of anomaly mode's.  Each step has its
backward, its step and its clearing noted, and its calls pass through a function mode: what that
takes shows in steps as short as the tiny MLP's.  Peak memory is that
of a process that trains for a second: {_memory(overhead)}.

{_workloads(overhead)}

## Small operations

What a loop by hand pays in a cell for an operation on a few numbers, in microseconds and as ratios
to the plain run.  The floor is a function mode that only calls through, the least that any recorder
of this kind costs.

{_small_table(small)}

The floor is about a microsecond for each call that torch hands to a mode, and a line may be
several: `p[3] += x` reads an item, adds in place and stores the item; `w.data -= 0.1 * g` reads
`.data`, multiplies, subtracts in place and assigns `.data`.  Above it, finding the line takes
half a microsecond and more: every frame between torch and the cell is read, so that the line is
right.  Noting an alias or a write takes another 1 to 2 µs, and what leaves the graph (`.data`,
`.detach()`, `.item()` of a value with a graph) is followed at 2 to 5 µs.  All of that is Python, so
that a line whose calls take a microsecond each stays above ×3.  What only reads (`x.shape`), what
neither writes nor has a graph (`x + 1`), and what torch hands over by Python code of its own
(`w ** 2`, `1 - w`) is close to the floor.

## A loop by hand

Seconds of CPU of one cell that trains by hand, plainly and under `%%autograd_check`, a copy of the
session and the judgement at the cell's end included.

{_loops_table(loops)}

What watching adds is bounded: once all lines of a loop have run in some hundred rounds and a second
of CPU time, and its operations are small, the recorder rests until the cell ends.  What it has seen
is told, and that the rest was not watched is said; an error that comes later is explained from the
source, as in a cell that is not watched.

## A cell

What a cell pays, in milliseconds of CPU: plainly; recorded; and watched as usual, with a copy of
the session from which rewrites can be tried.

{_cells_table(cells)}

No copy of the session is taken where autograd cannot fail: the cell only defines, or its names
reach neither a tensor with a graph nor what makes one.  The copy is a fork.  About half of its time
is the system's work on the page tables, by the size of the session (here some 220 MiB of its own),
the other half the copying of pages that the session touches while the copy lives; both are dearer
on a virtual machine.

## Explaining

Seconds from a failed `backward` to the explanation, by the number of nodes in the graph and of
tensors alive in the session; the first explanation, which imports what it needs, is left out.

{_explain_table(explain)}
"""


def _overhead_table(rows: list[Row]) -> str:
    lines = [
        "| | plain | recording | anomaly mode, `check_nan=False` | anomaly mode | share, "
        "`check_nan=False` | share |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        cells = [f"{row['milliseconds']:.2f} ms", *(_cell(row["ratios"][m]) for m in _MODES)]
        cells += [f"{_share(row, mode):.0%}" for mode in ("anomaly", "anomaly_nan")]
        lines.append(f"| {row['workload']} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(ratio: dict[str, float]) -> str:
    return f"×{ratio['median']:.2f} ({ratio['low']:.2f} to {ratio['high']:.2f})"


def _share(row: Row, mode: str) -> float:
    ratios = row["ratios"]
    return float((ratios["check"]["median"] - 1) / (ratios[mode]["median"] - 1))


def _memory(rows: list[Row]) -> str:
    each = (
        f"{row['workload']} {row['ratios']['plain']['memory']:.0f} MiB plain and "
        f"{row['ratios']['check']['memory']:.0f} MiB recorded"
        for row in rows
    )
    return ", ".join(each)


def _workloads(rows: list[Row]) -> str:
    return "\n".join(f"- {row['workload']}: {WORKLOADS[row['workload']][0]}" for row in rows)


def _small_table(rows: list[Row]) -> str:
    lines = ["| operation | plain | floor | recorded | above the floor |", "|---|---|---|---|---|"]
    for row in rows:
        plain, floor, watched = row["plain"], row["floor"], row["watched"]
        lines.append(
            f"| `{row['operation']}` | {plain:.2f} µs | ×{floor / plain:.1f} "
            f"| ×{watched / plain:.1f} | {watched - floor:.1f} µs |"
        )
    return "\n".join(lines)


def _loops_table(rows: list[Row]) -> str:
    lines = ["| trains | rounds | plain | watched | ratio |", "|---|---|---|---|---|"]
    for row in rows:
        plain, watched = row["plain"], row["watched"]
        lines.append(
            f"| {row['trains']} | {row['rounds']:,} | {plain:.2f} s | {watched:.2f} s "
            f"| ×{watched / plain:.1f} |"
        )
    return "\n".join(lines)


def _cells_table(rows: list[Row]) -> str:
    lines = ["| the cell | | plain | recorded | watched |", "|---|---|---|---|---|"]
    for row in rows:
        times = " | ".join(f"{row[mode]:.1f}" for mode in ("plain", "recorded", "watched"))
        lines.append(f"| {row['does']} | `{row['cell']}` | {times} |")
    return "\n".join(lines)


def _explain_table(rows: list[Row]) -> str:
    lines = ["| graph nodes | live tensors | seconds |", "|---|---|---|"]
    for row in rows:
        lines.append(f"| {row['nodes']:,} | {row['tensors']:,} | {row['seconds']:.3f} |")
    return "\n".join(lines)


def _machine() -> str:
    cores = os.cpu_count() or 1
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    busy = f", busy with other programs (load {load:.0f})" if load > cores else ""
    return f"{platform.system()}, {platform.machine()}, {cores} cores{_virtual()}{busy}"


def _virtual() -> str:
    """Whether Linux sees a hypervisor below."""
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8")
    except OSError:
        return ""
    return " of a virtual machine" if "hypervisor" in text else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("overhead", type=Path)
    parser.add_argument("small", type=Path)
    parser.add_argument("loops", type=Path)
    parser.add_argument("cells", type=Path)
    parser.add_argument("explain", type=Path)
    parser.add_argument("--docs", type=Path, default=Path(__file__).parents[1] / "docs")
    options = parser.parse_args()
    names = ("overhead", "small", "loops", "cells", "explain")
    measured = [json.loads(getattr(options, name).read_text("utf-8")) for name in names]
    (options.docs / "benchmarks").mkdir(parents=True, exist_ok=True)
    (options.docs / "benchmarks.md").write_text(page(*measured), "utf-8")
    (options.docs / "benchmarks" / "overhead.svg").write_text(chart(measured[0]), "utf-8")


if __name__ == "__main__":
    main()
