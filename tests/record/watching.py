"""Cells run under a recording: what it found, and the lines that its log names."""

from __future__ import annotations

from typing import Any

import torch
from notebook import Notebook
from torch import nn

from autograd_explain.program import Program, Source
from autograd_explain.record import Recording, Signal, watch


class Cells(Program):
    """Cells only: what called them, this file, is not the user's."""

    def present(self, filename: str) -> Source | None:
        return next((c for c in reversed(self.cells) if c.filename == filename), None)


def signals(cells: tuple[str, ...], *, sure: bool = True, **names: Any) -> list[Signal]:
    """The findings of all cells, each watched as a cell of one session."""
    return session(cells, {"__name__": "__main__", **names}, sure=sure)[0]


def session(
    cells: tuple[str, ...], namespace: dict[str, Any], *, sure: bool = True
) -> tuple[list[Signal], Recording]:
    """The findings of all cells, and the recording that they went into."""
    notebook, recording = Notebook(namespace), Recording()
    found: list[Signal] = []
    with torch.random.fork_rng(devices=()):
        for text in cells:
            code = notebook.add(text)
            with watch(Cells(notebook.cells), len(notebook.cells), recording):
                exec(code, notebook.namespace)
            assert recording.failure is None
            found += recording.signals() if sure else recording.notes()
    return found, recording


def watched(text: str) -> tuple[Recording, dict[str, object]]:
    """Run a cell under a recording."""
    notebook = Notebook({"torch": torch, "nn": nn})
    recording = Recording()
    code = notebook.add(text)
    with recording.watching(notebook.program, 1):
        exec(code, notebook.namespace)
    assert recording.limits == ()
    return recording, notebook.namespace


def lines(recording: Recording, entries: object) -> list[int]:
    """The lines of the user's that entries of the log belong to."""
    moments = recording.moments(recording.program)
    found = [moments.made(e[2] if type(e) is tuple else e.site, 0) for e in entries]  # type: ignore[attr-defined]
    return [m.place.line for m in found if m is not None and m.place is not None]
