"""A small session in this process: cells run as a notebook's do, with or without a checkpoint."""

import linecache
import random
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

from autograd_explain.model import Edit, Kind, Rewrite
from autograd_explain.program import Program, Source
from autograd_explain.rewrite.proposal import Proposal
from autograd_explain.verify import Checkpoint, Reference, Request, reference_for, verify


@dataclass
class Played:
    """A session after its cells ran: what failed, and the request for it."""

    texts: list[str]
    namespace: dict[str, Any]
    error: BaseException | None
    warned: str
    checkpoint: Checkpoint | None
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def program(self) -> Program:
        return Program(Source(i, None, t, t, _name(i)) for i, t in enumerate(self.texts, 1))

    def request(self, **changes: Any) -> Request:
        kind = Kind.ERROR if self.error else Kind.WARNING if self.warned else Kind.SILENT
        message = str(self.error) if self.error else self.warned
        values: dict[str, Any] = {
            "program": self.program,
            "cell": len(self.texts),
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
        for number, text in enumerate(self.texts, 1):
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


def _name(number: int) -> str:
    return f"<session cell {number}>"


@pytest.fixture
def play() -> Iterator[Callable[..., Played]]:
    taken: list[Checkpoint] = []
    state = torch.get_rng_state(), random.getstate()

    def run(*cells: str, checkpoint: bool = True, **options: Any) -> Played:
        space: dict[str, Any] = {"__name__": "__main__"}
        played = Played([], space, None, "", None, options)
        for number, text in enumerate(cells, 1):
            played.texts.append(text)
            linecache.cache[_name(number)] = len(text), None, text.splitlines(True), _name(number)
            if checkpoint:
                found = Checkpoint.take(space)
                assert found is not None
                taken.append(found)
                played.checkpoint = found
            with warnings.catch_warnings(record=True) as heard:
                warnings.simplefilter("always")
                try:
                    exec(compile(text, _name(number), "exec"), space)
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
