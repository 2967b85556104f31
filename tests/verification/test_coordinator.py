"""Questions to one run of the program, where the run does not come to its end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from autograd_explain.model import Kind, Outcome
from autograd_explain.verification.coordinator import _Trials
from autograd_explain.verification.plan import Plan, Reference
from autograd_explain.verification.replay import Job, Result


class _TooSlow:
    def run(self, jobs: Mapping[str, Job]) -> Iterator[tuple[str, Result]]:
        return ((key, Result(stopped="budget")) for key in jobs)


@pytest.mark.parametrize("question", ["ignored", "severed"])
def test_a_run_that_was_stopped_has_shown_nothing(question: str) -> None:
    plan = Plan((), (), Reference.NONE, Kind.SILENT, "", 1.0, 100, **{question: True})
    (verdict,) = _Trials(plan, _TooSlow()).run()
    assert verdict.outcome is Outcome.NOT_TRIED
