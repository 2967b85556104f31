"""Questions to one run of the program, where the run does not come to its end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from autograd_explain.model import Kind, Outcome
from autograd_explain.verification.coordinator import _Trials
from autograd_explain.verification.plan import Plan, Reference, Trial
from autograd_explain.verification.replay import Job, Result


class _TooSlow:
    def run(self, jobs: Mapping[str, Job]) -> Iterator[tuple[str, Result]]:
        return ((key, Result(stopped="budget")) for key in jobs)


@pytest.mark.parametrize("question", ["ignored", "severed"])
def test_a_run_that_was_stopped_has_shown_nothing(question: str) -> None:
    plan = Plan((), (), Reference.NONE, Kind.SILENT, "", 1.0, 100, **{question: True})
    (verdict,) = _Trials(plan, _TooSlow()).run()
    assert verdict.outcome is Outcome.NOT_TRIED


class _Noted:
    """Notes what is run side by side; the original takes `stopped`."""

    def __init__(self, stopped: str = "") -> None:
        self.groups: list[list[str]] = []
        self._stopped = stopped

    def run(self, jobs: Mapping[str, Job]) -> Iterator[tuple[str, Result]]:
        self.groups += [[*jobs]] if jobs else []
        for key in jobs:
            yield key, Result(stopped=self._stopped if key == "plain" else "")


def _of(*trials: Trial) -> Plan:
    return Plan((), trials, Reference.NONE, Kind.SILENT, "", 1.0, 100)


def test_where_nothing_is_compared_a_trial_does_not_wait_for_the_original() -> None:
    """A program that takes half of the time could not be tried at all."""
    pool = _Noted()
    (verdict,) = _Trials(_of(Trial(0, ())), pool).run()
    assert verdict.outcome is Outcome.RUNS
    assert pool.groups == [["plain", "0"]]


def test_a_trial_says_nothing_where_the_original_does_not_run_as_it_did() -> None:
    (verdict,) = _Trials(_of(Trial(0, ())), _Noted("crashed")).run()
    assert verdict.outcome is Outcome.NOT_TRIED
