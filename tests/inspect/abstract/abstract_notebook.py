"""Runs a small notebook the way a kernel does and gives the failure to the stages."""

from __future__ import annotations

import contextlib
import io
import linecache
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from autograd_explain.incident import Incident, frames_of
from autograd_explain.inspect.abstract import AbstractHistory
from autograd_explain.inspect.graph import Graph
from autograd_explain.model import Kind
from autograd_explain.program import Program, Source


def cells_of(text: str) -> list[str]:
    """The cells of a notebook in text form."""
    found: list[list[str]] = []
    for line in text.splitlines():
        if line.startswith("# %%"):
            found.append([])
        elif found:
            found[-1].append(line)
    return ["\n".join(cell).rstrip() for cell in found]


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


def run(cells: list[str], tag: str = "") -> Incident:
    """Runs cells up to the first that fails."""
    names: dict[str, Any] = {"__name__": "__main__"}
    sources: list[Source] = []
    for number, cell in enumerate(cells, 1):
        filename = f"<cell {tag} {number}>"
        sources.append(Source(number, None, cell, cell, filename))
        linecache.cache[filename] = (len(cell), None, cell.splitlines(True), filename)
        try:
            exec(compile(cell, filename, "exec"), names)
        except Exception as error:
            frames = frames_of(error.__traceback__)
            program = Program(sources)
            return Incident(Kind.ERROR, str(error), program, names, frames, error, number)
    return Incident(Kind.SILENT, "", Program(sources), names, (), None, len(cells))


def roots(incident: Incident) -> tuple[torch.Tensor, ...]:
    for live in reversed(incident.frames):
        values = live.frame.f_locals
        if live.filename.endswith("torch/autograd/__init__.py"):
            found = values.get("tensors", values.get("outputs"))
            found = (found,) if isinstance(found, torch.Tensor) else found
            return tuple(t for t in found if isinstance(t, torch.Tensor))
    return ()


def history_of(incident: Incident) -> AbstractHistory:
    return AbstractHistory(incident.program, incident, Graph(roots(incident)))


def marked(cells: list[str], mark: str) -> set[tuple[int, int]]:
    """[cell, line] of every line that ends with the comment `# mark`."""
    return {
        (number, line)
        for number, cell in enumerate(cells, 1)
        for line, text in enumerate(cell.splitlines(), 1)
        if text.endswith(f"# {mark}")
    }


def programs(folder: str) -> list[Path]:
    return sorted((Path(__file__).parent / folder).glob("*.py"))
