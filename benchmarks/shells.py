"""What the measuring scripts share: a real shell, a cell that runs in it, and the rows written."""

from __future__ import annotations

import contextlib
import io
import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config


def new_shell() -> Any:
    """A shell without a history file, in place of the one before."""
    InteractiveShell.clear_instance()
    config = Config({"HistoryManager": {"enabled": False}})
    return InteractiveShell.instance(config=config)


def run(shell: Any, cell: str) -> float:
    """The CPU seconds that a cell took; what it raises is raised."""
    began = time.process_time()
    with contextlib.redirect_stdout(io.StringIO()):
        shell.run_cell(cell, store_history=True).raise_error()
    return time.process_time() - began


def write(rows: Sequence[Any], path: str | None) -> None:
    """Dataclasses as JSON, where a path is given."""
    if path:
        with open(path, "w", encoding="utf-8") as file:
            json.dump([asdict(row) for row in rows], file, indent=1)
