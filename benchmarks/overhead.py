"""What watching costs: plain, `%autograd_check on`, and anomaly mode, side by side.

usage: python benchmarks/overhead.py [--rounds N] [--json FILE] [WORKLOAD ...]

Every mode trains the same model in one process and one shell, taking turns of some 150 ms,
so that a busy machine slows all of them alike.  A round gives one ratio to plain per mode; shown
are their median and quartiles.  Times are of the process (CPU), one thread.  Peak memory is that of
a fresh process per mode.  A mode that does not reproduce the plain run's losses is an error.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from shells import new_shell, run, write
from workloads import WORKLOADS

MODES = ("plain", "check", "anomaly", "anomaly_nan")
_PIECE = 0.15  # seconds of training per turn: a new cell's first step costs more than the rest
_WARM_UP = 2  # rounds
_SAME_STEPS = 5


@dataclass(frozen=True)
class Ratio:
    """Time of a mode over that of the plain run, and its peak memory in MiB."""

    median: float
    low: float
    high: float
    memory: float


@dataclass(frozen=True)
class Row:
    """One workload: plain milliseconds a step, and the ratios by mode."""

    workload: str
    milliseconds: float
    ratios: dict[str, Ratio]

    def share(self, anomaly: str) -> float:
        """The check's extra time as a share of anomaly mode's."""
        return (self.ratios["check"].median - 1) / (self.ratios[anomaly].median - 1)


class Bench:
    """A workload in a real shell; `run` times n steps in a mode."""

    def __init__(self, workload: str) -> None:
        self._shell = new_shell()
        self._shell.run_line_magic("load_ext", "autograd_explain")
        self._program = WORKLOADS[workload][1]
        self._cell("import time")
        self._cell(self._program)

    def again(self) -> None:
        """The model as it was in the beginning."""
        self._cell(self._program)

    def run(self, mode: str, steps: int) -> float:
        """CPU seconds of `steps` steps, the cell's own beginning and end left out."""
        with _in_mode(mode):
            watch = "%autograd_check --no-verify on\n" if mode == "check" else ""
            if watch:
                self._cell(watch)
            self._cell(
                "_begin = time.process_time()\n"
                f"_loss = steps({steps})\n"
                "_seconds = time.process_time() - _begin"
            )
            if watch:
                self._cell("%autograd_check off")
        return float(self._shell.user_ns["_seconds"])

    @property
    def loss(self) -> float:
        return float(self._shell.user_ns["_loss"])

    def _cell(self, text: str) -> None:
        run(self._shell, text)


@contextlib.contextmanager
def _in_mode(mode: str) -> Iterator[None]:
    if mode not in ("anomaly", "anomaly_nan"):
        yield
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that anomaly mode is slow
        with torch.autograd.set_detect_anomaly(True, check_nan=mode == "anomaly_nan"):
            yield


def measure(workload: str, rounds: int, modes: tuple[str, ...] = MODES) -> Row:
    """The ratios of one workload."""
    bench = Bench(workload)
    _assert_same_losses(bench, modes)
    bench.run("plain", 3)
    steps = max(1, round(_PIECE / (bench.run("plain", 3) / 3)))
    seconds: dict[str, list[float]] = {mode: [] for mode in modes}
    for number in range(rounds + _WARM_UP):
        turn = number % len(modes)
        gc.collect()
        for mode in (*modes[turn:], *modes[:turn]):
            took = bench.run(mode, steps) / steps
            if number >= _WARM_UP:
                seconds[mode].append(took)
    plain = seconds["plain"]
    ratios = {mode: _ratio(workload, mode, times, plain) for mode, times in seconds.items()}
    return Row(workload, min(plain) * 1e3, ratios)


def _assert_same_losses(bench: Bench, modes: tuple[str, ...]) -> None:
    """Every mode, from the same beginning, arrives at the same loss to the last bit."""
    losses = {}
    for mode in modes:
        bench.again()
        bench.run(mode, _SAME_STEPS)
        losses[mode] = bench.loss
    if len(set(losses.values())) != 1:
        raise SystemExit(f"the losses differ: {losses}")


def _ratio(workload: str, mode: str, times: list[float], plain: list[float]) -> Ratio:
    each = [time / base for time, base in zip(times, plain, strict=True)]
    low, middle, high = statistics.quantiles(each, n=4)
    return Ratio(middle, low, high, _peak_memory(workload, mode))


def _peak_memory(workload: str, mode: str) -> float:
    """MiB at the highest point of a fresh process that trains for a second."""
    command = [sys.executable, __file__, "--memory", mode, workload]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def print_peak(workload: str, mode: str) -> None:
    bench = Bench(workload)
    end = time.monotonic() + 1
    while time.monotonic() < end:
        bench.run(mode, 5)
    print(_peak_so_far())


def _peak_so_far() -> float:
    """MiB.  Linux hands `ru_maxrss` on to a program that is started, `VmHWM` is its own."""
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            return next(int(line.split()[1]) for line in status if "VmHWM" in line) / 1024
    except OSError:
        import resource  # not on Windows

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def show(row: Row, write: Callable[[str], object] = print) -> None:
    parts = (
        f"{mode} {r.median:.2f} ({r.low:.2f}-{r.high:.2f}) {r.memory:.0f} MiB"
        for mode, r in row.ratios.items()
    )
    write(f"{row.workload:12} {row.milliseconds:8.2f} ms/step   " + "   ".join(parts))
    write(
        f"{'':12} share of anomaly mode's extra time: {row.share('anomaly_nan'):.0%}"
        f" (check_nan=False: {row.share('anomaly'):.0%})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workloads", nargs="*", help=f"of: {', '.join(WORKLOADS)}")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--json", help="write the rows to this file")
    parser.add_argument("--memory", choices=MODES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    chosen = options.workloads or list(WORKLOADS)
    if options.memory:
        print_peak(chosen[0], options.memory)
        return
    rows = []
    for workload in chosen:
        rows.append(measure(workload, options.rounds))
        show(rows[-1])
    write(rows, options.json)


if __name__ == "__main__":
    main()
