"""Runs a small notebook the way a kernel does and gives the failure to the stages."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from notebook import Notebook

from autograd_explain.incident import Incident, frames_of
from autograd_explain.inspect.live.graph import Graph
from autograd_explain.inspect.shadow import InferredHistory
from autograd_explain.model import Kind


@contextlib.contextmanager
def fresh_session() -> Iterator[None]:
    """Global state of torch as in a new kernel, put back afterwards."""
    dtype, grad = torch.get_default_dtype(), torch.is_grad_enabled()
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        torch.set_default_dtype(dtype)
        torch.set_grad_enabled(grad)


def run(cells: Sequence[str]) -> Incident:
    """Runs cells up to the first that fails."""
    notebook = Notebook()
    for number, cell in enumerate(cells, 1):
        try:
            notebook.run(cell)
        except Exception as error:
            frames = frames_of(error.__traceback__)
            program, names = notebook.program, notebook.namespace
            return Incident(Kind.ERROR, str(error), program, names, frames, error, number)
    program, names = notebook.program, notebook.namespace
    return Incident(Kind.SILENT, "", program, names, (), None, len(cells))


def roots(incident: Incident) -> tuple[torch.Tensor, ...]:
    for live in reversed(incident.frames):
        values = live.frame.f_locals
        if live.filename.endswith("torch/autograd/__init__.py"):
            found = values.get("tensors", values.get("outputs"))
            found = (found,) if isinstance(found, torch.Tensor) else found
            return tuple(t for t in found if isinstance(t, torch.Tensor))
    return ()


def history_of(incident: Incident) -> InferredHistory:
    return InferredHistory(incident.program, incident, Graph(roots(incident)))


def marked(cells: Sequence[str], mark: str) -> set[tuple[int, int]]:
    """[cell, line] of every line that ends with the comment `# mark`."""
    return {
        (number, line)
        for number, cell in enumerate(cells, 1)
        for line, text in enumerate(cell.splitlines(), 1)
        if text.endswith(f"# {mark}")
    }


def programs(folder: str) -> list[Path]:
    return sorted((Path(__file__).parent / folder).glob("*.py"))
