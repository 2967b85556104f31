"""Runs notebooks, each in a process of its own in which everything is loaded already.

What comes out depends on the notebook alone: random numbers start at 0, and with the extension no
limit in seconds is reached, so that a busy machine gives the same report.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from unittest import mock

from notebook import PATIENCE, kernel_shell, run_cells, without_time_limits

#: For a notebook that hangs; nothing that works comes near.
_LIMIT = 600.0


@dataclass(frozen=True)
class Report:
    """What was said after the cell `cell` (counted from 1), as `Explanation.to_dict` gives it."""

    cell: int
    told: dict[str, Any]


@dataclass(frozen=True)
class Ran:
    """A notebook after its last cell or its first failing one.

    `trouble` is what went wrong inside the extension.
    """

    reports: tuple[Report, ...]
    trouble: str


@dataclass(frozen=True)
class Values:
    """What expressions are after a notebook's last cell, as nested lists; None: no tensor."""

    error: str
    found: tuple[Any, ...]

    def agrees(self, other: Values) -> bool:
        """Both ran to their end and have the same numbers, but for rounding."""
        if self.error or other.error:
            return False
        return all(_close(a, b) for a, b in zip(self.found, other.found, strict=True))


def _close(a: Any, b: Any) -> bool:
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(_close(x, y) for x, y in zip(a, b, strict=True))
    if not isinstance(a, float) or not isinstance(b, float):
        return False
    return abs(a - b) <= 1e-6 + 1e-4 * abs(b)


def run_in_session(cells: Sequence[str], *, watched: bool) -> Ran:
    """Run a notebook with the extension, from the top to its first failure, in a new process.

    `watched`: under `%autograd_check on`, so its rewrites are tried.
    """
    return Ran(*in_new_process(explained, tuple(cells), watched))


def run_and_load(cells: Sequence[str]) -> Ran:
    """Run a notebook without the extension to its first failure, then load it, in a new process."""
    return Ran(*in_new_process(explained_later, tuple(cells)))


def run_plainly(cells: Sequence[str], expressions: Sequence[str]) -> Values:
    """Run a notebook without the extension in a new process and evaluate expressions at its end."""
    return Values(*in_new_process(_values, tuple(cells), tuple(expressions)))


def in_new_process(body: Callable[..., Any], *arguments: Any, seconds: float = _LIMIT) -> Any:
    """What a module's function gives for these arguments."""
    context = _server()
    ours, theirs = context.Pipe(duplex=False)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name).resolve()
        child = context.Process(target=_process, args=(body, arguments, folder, theirs))
        child.start()
        theirs.close()
        try:
            answered = ours.poll(seconds)
            return ours.recv() if answered else _failed(folder, f"no answer in {seconds} s")
        except EOFError:
            return _failed(folder, "ended without an answer")
        finally:
            _end(child)


def _failed(folder: Path, why: str) -> None:
    printed = folder / "printed.txt"
    text = printed.read_text("utf-8", errors="replace") if printed.exists() else ""
    raise RuntimeError(f"the notebook's process: {why}\n{text[-3000:]}")


@cache
def _server() -> Any:
    """Forks for us: a process in which no test has run."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["session_server"])
    path = os.pathsep.join(p for p in (str(Path(__file__).parent), *sys.path) if p)
    with mock.patch.dict(os.environ, {"PYTHONPATH": path}):
        forkserver.ensure_running()
    return context


def _end(child: Any) -> None:
    """The process and all that it has started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.kill()
    child.join()


# -- in the new process -----------------------------------------------------------------


def _process(
    body: Callable[..., Any], arguments: tuple[Any, ...], folder: Path, answer: Connection
) -> None:
    """The process's whole life."""
    os.setsid()
    os.chdir(folder)
    written = os.open(folder / "printed.txt", os.O_WRONLY | os.O_CREAT)
    for number in (1, 2):
        os.dup2(written, number)
    os.environ |= {"IPYTHONDIR": str(folder / "ipython"), "AUTOGRAD_EXPLAIN_LANG": "en"}
    os.environ.pop("VIRTUAL_ENV", None)
    _seed()
    answer.send(body(*arguments))
    sys.stdout.flush()


def _seed() -> None:
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    random.seed(0)
    with contextlib.suppress(ModuleNotFoundError):
        import numpy

        numpy.random.seed(0)


def explained(cells: tuple[str, ...], watched: bool) -> tuple[tuple[Report, ...], str]:
    """What is said in this process, and what went wrong inside the extension."""
    import autograd_explain
    from autograd_explain.intercept import guard

    reports: list[Report] = []
    last = None
    with without_time_limits(), kernel_shell() as shell:
        shell.run_line_magic("load_ext", "autograd_explain")
        if watched:
            shell.run_line_magic("autograd_check", f"on --budget {PATIENCE}")
        for number, cell in enumerate(cells, 1):
            result = shell.run_cell(cell, store_history=True)
            before, last = last, autograd_explain.last()
            if last is not None and last is not before:
                reports.append(Report(number, last.to_dict()))
            if not result.success:
                break
        return tuple(reports), guard.report()


def explained_later(cells: tuple[str, ...]) -> tuple[tuple[Report, ...], str]:
    """What is said of a failure when the extension is loaded after it."""
    import autograd_explain
    from autograd_explain.intercept import guard

    with without_time_limits(), kernel_shell() as shell:
        ran = (shell.run_cell(cell, store_history=True) for cell in cells)
        failed = next((result for result in ran if not result.success), None)
        shell.run_cell("%load_ext autograd_explain", store_history=True)
        last = autograd_explain.last()
        if last is None or failed is None:
            return (), guard.report()
        return (Report(failed.execution_count, last.to_dict()),), guard.report()


def _values(cells: tuple[str, ...], expressions: tuple[str, ...]) -> tuple[str, tuple[Any, ...]]:
    try:
        space = run_cells(cells)
        return "", tuple(_numbers(eval(e, space)) for e in expressions)
    except Exception as error:
        return f"{type(error).__name__}: {error}", ()


def _numbers(value: Any) -> Any:
    import torch

    return None if value is None else torch.as_tensor(value).detach().double().tolist()
