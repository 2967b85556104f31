"""A notebook in this process: cells run one after another in a namespace, and a kernel's shell."""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import io
import itertools
import linecache
import os
import pkgutil
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from types import CodeType, SimpleNamespace
from typing import Any
from unittest import mock

import libcst as cst
import torch
from IPython.core.inputtransformer2 import TransformerManager
from IPython.core.interactiveshell import InteractiveShell
from libcst.metadata import MetadataWrapper, PositionProvider
from traitlets.config import Config

import autograd_explain
from autograd_explain.intercept import guard
from autograd_explain.program import Program, Source
from autograd_explain.render.topic_content import cells_of

__all__ = [
    "PATIENCE",
    "Notebook",
    "captured",
    "cells_of",
    "fresh_torch",
    "installed",
    "kernel_shell",
    "load_what_replays_need",
    "python_of",
    "run_cells",
    "seconds_of",
    "seconds_to_parse",
    "shell_with_extension",
    "without_time_limits",
]

#: Seconds for all that users get less time for: a busy machine is no reason to fail.
PATIENCE = 300
#: Limits in seconds of what is looked at in the session itself, by part of the package.
_TIMED = re.compile(r"autograd_explain\.(nodes|inspect|record)\b")
_numbers = itertools.count(1)
#: The process groups of notebooks, kept: where DistributedDataParallel is the last to hold one, a
#: collection ends it with the GIL held and waits for its thread, which may need the GIL to end
#: (torch 2.13, seen once: the process stood still).
_groups: list[Any] = []


@contextlib.contextmanager
def installed(folder: Path, name: str, text: str) -> Iterator[Path]:
    """An installed package of one module, for as long as the body runs; its file."""
    packages = folder / "site-packages"
    packages.mkdir()
    file = packages / f"{name}.py"
    file.write_text(text)
    with mock.patch.object(sys, "path", [str(packages), *sys.path]):
        sys.modules.pop(name, None)
        importlib.invalidate_caches()
        try:
            yield file
        finally:
            sys.modules.pop(name, None)


class Notebook:
    """Cells that run one after another in one namespace: a kernel without IPython.

    `program` is what the stages of the package read; its file names are this notebook's own.
    """

    def __init__(self, namespace: dict[str, Any] | None = None) -> None:
        fresh: dict[str, Any] = {"__name__": "__main__"}
        self.namespace = fresh if namespace is None else namespace
        self.cells: list[Source] = []
        self._number = next(_numbers)

    @property
    def program(self) -> Program:
        return Program(self.cells, self.namespace)

    def add(self, text: str) -> CodeType:
        """The next cell, compiled and not yet run."""
        number = len(self.cells) + 1
        name, python = f"<notebook {self._number}, cell {number}>", python_of(text)
        self.cells.append(Source(number, None, text, python, name))
        linecache.cache[name] = len(python), None, python.splitlines(True), name
        return compile(python, name, "exec")

    def run(self, text: str) -> None:
        exec(self.add(text), self.namespace)


def run_cells(cells: Sequence[str]) -> dict[str, Any]:
    """Run a notebook from the top; its namespace."""
    notebook = Notebook()
    for text in cells:
        notebook.run(text)
    return notebook.namespace


def python_of(cell: str) -> str:
    """A cell as Python, its magics translated."""
    return str(TransformerManager().transform_cell(cell))


def seconds_of(action: Callable[[], object]) -> float:
    """CPU seconds that something takes, collections apart: what the process of many tests holds by
    then is none of its own."""
    gc.disable()
    started = time.process_time()
    try:
        action()
        return time.process_time() - started
    finally:
        gc.enable()


def seconds_to_parse(text: str) -> float:
    """CPU seconds that LibCST takes for a text with its places: what to measure others by, since
    seconds depend on the machine."""
    return seconds_of(lambda: MetadataWrapper(cst.parse_module(text)).resolve(PositionProvider))


# -- a shell ----------------------------------------------------------------------------


@contextlib.contextmanager
def kernel_shell(xmode: str = "Minimal") -> Iterator[InteractiveShell]:
    """IPython's shell without the extension; everything as before afterwards.

    `xmode`: the traceback that it shows; those of the other modes take longer than a report.
    """
    main, shown = sys.modules["__main__"], warnings.showwarning
    InteractiveShell.clear_instance()
    guard.clear()
    config = Config(
        {"HistoryManager": {"hist_file": ":memory:"}, "InteractiveShell": {"xmode": xmode}}
    )
    shell = InteractiveShell.instance(config=config)
    try:
        yield shell
    finally:
        autograd_explain.unload_ipython_extension(shell)
        autograd_explain._last = autograd_explain._told = None
        guard.clear()
        shell.history_manager.end_session()
        # A process of many shells would keep them all, and clear one after the other at its exit.
        atexit.unregister(shell.atexit_operations)
        InteractiveShell.clear_instance()
        sys.modules["__main__"] = main
        for name in ("last_type", "last_value", "last_traceback", "last_exc"):
            sys.__dict__.pop(name, None)
    assert warnings.showwarning is shown


@contextlib.contextmanager
def shell_with_extension() -> Iterator[InteractiveShell]:
    """A shell with the extension loaded, in English, without limits in seconds."""
    english = mock.patch.dict(os.environ, {"AUTOGRAD_EXPLAIN_LANG": "en"})
    with fresh_torch(), english, without_time_limits(), kernel_shell() as shell:
        shell.extension_manager.load_extension("autograd_explain")
        yield shell


# -- the surroundings -------------------------------------------------------------------


@contextlib.contextmanager
def captured() -> Iterator[io.StringIO]:
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        yield output


@contextlib.contextmanager
def fresh_torch() -> Iterator[None]:
    """A notebook may leave the grad mode, the random state, a process group or a warning that
    comes only once."""
    always, detect = torch.is_warn_always_enabled(), torch.is_anomaly_enabled()
    grad, dtype = torch.is_grad_enabled(), torch.get_default_dtype()
    with torch.random.fork_rng(devices=()), warnings.catch_warnings():
        warnings.simplefilter("default")
        torch.set_warn_always(True)
        try:
            yield
        finally:
            torch.set_warn_always(always)
            torch.set_grad_enabled(grad)
            torch.set_default_dtype(dtype)
            torch.autograd.set_detect_anomaly(detect)
            if torch.distributed.is_initialized():
                _groups.append(torch.distributed.group.WORLD)
                torch.distributed.destroy_process_group()


@contextlib.contextmanager
def without_time_limits() -> Iterator[None]:
    """Nothing that is bounded in seconds stops early, however busy the machine is."""
    from autograd_explain.record.detect.finding import TimeShare
    from autograd_explain.verification import checkpoint

    clocks = ("monotonic", "perf_counter", "thread_time")
    stands = SimpleNamespace(**dict.fromkeys(clocks, lambda: 0.0))
    with contextlib.ExitStack() as stack:
        for module in map(importlib.import_module, filter(_TIMED.match, _modules_of_ours())):
            if hasattr(module, "time"):
                stack.enter_context(mock.patch.object(module, "time", stands))
        stack.enter_context(mock.patch.object(TimeShare, "allows", lambda *_, **__: True))
        stack.enter_context(mock.patch.object(checkpoint, "_READY_SECONDS", float(PATIENCE)))
        yield


def load_what_replays_need() -> None:
    """Each copy of this process would load it for itself, and compile it first: a replay writes no
    file, so none is there for the next one either."""
    importlib.import_module("torch._dynamo")
    for name in _modules_of_ours():
        if name.startswith("autograd_explain.verification."):
            importlib.import_module(name)


@cache
def _modules_of_ours() -> tuple[str, ...]:
    """The package's modules but for the causes' folders, which hold programs."""
    found = pkgutil.walk_packages(autograd_explain.__path__, "autograd_explain.")
    return tuple(m.name for m in found if not m.name.startswith("autograd_explain.knowledge."))
