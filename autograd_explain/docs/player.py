"""Runs the cases of knowledge folders in a process of its own and writes what was diagnosed.

python -m autograd_explain.docs.player OUT.pickle FOLDER …
"""

from __future__ import annotations

import contextlib
import os
import pickle
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..model import Diagnosis
from ..render.topic_content import cells_of


def main(arguments: Sequence[str]) -> int:
    out, verify, *names = arguments
    folders = map(Path, names)
    found: Mapping[str, Diagnosis | None] = {
        folder.name: _played(_program(folder), verify == "verify") for folder in folders
    }
    Path(out).write_bytes(pickle.dumps(found))
    return 0


def _played(cells: Sequence[str], verify: bool) -> Diagnosis | None:
    """Some faults are only shown by another run of the cell, whether rewrites are tried or not."""
    found = play(cells, verify=verify)
    return play(cells) if found is None and not verify else found


def _program(folder: Path) -> tuple[str, ...]:
    return cells_of((folder / "case.py").read_text("utf-8"))


def play(
    cells: Sequence[str], causes: tuple[str, ...] = (), *, verify: bool = True
) -> Diagnosis | None:
    """The first explanation of a notebook whose cells are watched and its rewrites tried.

    `causes` are folders with causes of one's own.
    """
    import autograd_explain

    with _shell() as shell:
        shell.run_line_magic("config", f"AutogradExplain.causes = {list(causes)!r}")
        shell.run_line_magic("autograd_check", "on" if verify else "on --no-verify")
        for cell in cells:
            result = shell.run_cell(cell, store_history=True)
            last = autograd_explain.last()
            if last is not None:
                return last.diagnosis
            if not result.success:
                return None
    return None


@contextlib.contextmanager
def _shell() -> Iterator[Any]:
    """A fresh shell with the extension, which says nothing."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    import autograd_explain

    InteractiveShell.clear_instance()
    # Nobody reads its tracebacks, which take longer than an explanation.
    config = Config(
        {"HistoryManager": {"enabled": False}, "InteractiveShell": {"xmode": "Minimal"}}
    )
    with fresh_torch(), _silence():
        shell: Any = InteractiveShell.instance(config=config)
        shell.extension_manager.load_extension("autograd_explain")
        try:
            yield shell
        finally:
            autograd_explain.unload_ipython_extension(shell)
            autograd_explain._last = None
            InteractiveShell.clear_instance()


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    with (
        open(os.devnull, "w", encoding="utf-8") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        yield


@contextlib.contextmanager
def fresh_torch() -> Iterator[None]:
    """A notebook may leave the grad mode, a default or a warning that comes only once."""
    import torch

    torch.set_num_threads(1)
    dtype = torch.get_default_dtype()
    with torch.random.fork_rng(devices=()), warnings.catch_warnings():
        warnings.simplefilter("default")
        torch.set_warn_always(True)
        try:
            yield
        finally:
            torch.set_grad_enabled(True)
            torch.set_default_dtype(dtype)
            torch.autograd.set_detect_anomaly(False)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
