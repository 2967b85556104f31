"""Every message that a small program raises is explained by an entry that lists it."""

from __future__ import annotations

import warnings

import pytest
from programs import PROGRAMS, Program

from autograd_explain.incident import Incident, frames_of
from autograd_explain.intercept import guard
from autograd_explain.knowledge.entry import entries
from autograd_explain.model import Kind
from autograd_explain.pipeline import UNKNOWN, explain_incident, recognise
from autograd_explain.program import Program as Source
from autograd_explain.render.explanation import Explanation
from autograd_explain.settings import Options

ERRORS = [p for p in PROGRAMS if p.kind == "error"]


def explained(program: Program) -> tuple[Explanation | None, Incident]:
    """The program's error as the pipeline tells it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(Exception) as caught:
            program.run()
        frames = frames_of(caught.tb)
        incident = Incident(
            Kind.ERROR,
            str(caught.value),
            Source(),
            dict(program.run.__globals__),  # type: ignore[attr-defined]
            frames,
            caught.value,
        )
        guard.clear()
        return explain_incident(incident, Options()), incident


@pytest.mark.one_in(3)
@pytest.mark.parametrize("program", ERRORS, ids=lambda p: f"{p.id}-{p.run.__name__}")
def test_an_entry_that_lists_the_message_explains_it(program: Program) -> None:
    found, incident = explained(program)
    match = recognise(incident, entries())
    assert match is not None and found is not None
    assert guard.report() == "", "a stage failed"
    told = found.diagnosis.finding
    assert told.cause != UNKNOWN, f"nobody explains {match.pattern}"
    assert {match.pattern, *match.siblings} & set(entries()[told.cause].patterns)
    for language in ("en", "ja", "zh"):
        assert found.in_language(language).headline
