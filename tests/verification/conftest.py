"""A small session in this process: cells run as a notebook's do, with or without a checkpoint."""

import random
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from notebook import Notebook

from autograd_explain.model import Edit, Kind, Rewrite
from autograd_explain.program import Program
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.verification import Checkpoint, Reference, Request, reference_for, verify


@dataclass
class Played:
    """A session after its cells ran: what failed, and the request for it."""

    notebook: Notebook
    error: BaseException | None
    warned: str
    checkpoint: Checkpoint | None
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def namespace(self) -> dict[str, Any]:
        return self.notebook.namespace

    @property
    def program(self) -> Program:
        return self.notebook.program

    def request(self, **changes: Any) -> Request:
        kind = Kind.ERROR if self.error else Kind.WARNING if self.warned else Kind.SILENT
        message = str(self.error) if self.error else self.warned
        values: dict[str, Any] = {
            "program": self.program,
            "cell": len(self.program.cells),
            "message": message,
            "kind": kind,
            "reference": reference_for(kind, message, overwritten=True),
            "checkpoint": self.checkpoint,
            "seconds": 30.0,
            **self.options,
        }
        return Request(**{**values, **changes})

    def proposal(self, *changes: tuple[str, str], intended: bool = False) -> Proposal:
        """Replace texts, wherever they stand."""
        edits = []
        for number, text in enumerate((cell.text for cell in self.program.cells), 1):
            new = text
            for old, replacement in changes:
                new = new.replace(old, replacement)
            if new != text:
                edits.append(Edit(number, None, text, new))
        assert edits
        return Proposal("fix", tuple(edits), intended_difference=intended)

    def try_out(self, *changes: tuple[str, str], **options: Any) -> Rewrite:
        (rewrite,) = verify([self.proposal(*changes)], self.request(**options), keep_all=True)
        return rewrite


@pytest.fixture
def play() -> Iterator[Callable[..., Played]]:
    taken: list[Checkpoint] = []
    state = torch.get_rng_state(), random.getstate()

    def run(*cells: str, checkpoint: bool = True, **options: Any) -> Played:
        notebook = Notebook()
        played = Played(notebook, None, "", None, options)
        for text in cells:
            if checkpoint:
                found = Checkpoint.take(notebook.namespace)
                assert found is not None
                taken.append(found)
                played.checkpoint = found
            with warnings.catch_warnings(record=True) as heard:
                warnings.simplefilter("always")
                try:
                    notebook.run(text)
                except Exception as error:
                    played.error = error
            if heard:
                played.warned = str(heard[-1].message)
            if played.error is not None:
                break
        return played

    yield run
    for found in taken:
        found.discard()
    torch.set_rng_state(state[0])
    random.setstate(state[1])
    torch.set_grad_enabled(True)


@pytest.fixture
def reference() -> type[Reference]:
    return Reference
