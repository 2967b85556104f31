"""How the time of a check is shared out."""

from __future__ import annotations

import time
from typing import Any

import pytest

from autograd_explain import repair, verification
from autograd_explain.incident import Incident
from autograd_explain.intercept.verification import Verifier
from autograd_explain.model import Confidence, Finding, Kind
from autograd_explain.program import Program, Source
from autograd_explain.verification import Request

_SECONDS = 10.0


@pytest.fixture
def incident() -> Incident:
    program = Program((Source(1, None, "x = 1", "x = 1", "<cell 1>"),))
    return Incident(Kind.SILENT, "", program, {}, cell=1)


def test_of_the_time_that_findings_share_a_trial_may_take_all(
    incident: Incident, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, float] = {}

    def tried(proposals: Any, request: Request) -> Any:
        given["trial"] = request.seconds
        return (), ()

    def searched(finding: Any, request: Request, *known: Any) -> Any:
        given["search"] = request.seconds
        return ()

    monkeypatch.setattr(verification, "verify_all", tried)
    monkeypatch.setattr(repair, "search", searched)
    Verifier(None, _SECONDS, (), of=2)(incident, Finding("", Confidence.GENERAL, {}), ())
    assert given["trial"] == _SECONDS
    assert given["search"] <= _SECONDS / 2


def test_what_a_question_takes_is_the_rewrites_no_more(
    incident: Incident, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[float] = []

    def asked(request: Request) -> tuple[()]:
        given.append(request.seconds)
        time.sleep(0.2)
        return ()

    monkeypatch.setattr(verification, "reference_gradients", asked)
    verifier = Verifier(None, _SECONDS, ())
    verifier.differences(incident)
    assert given == [_SECONDS / 2]
    assert verifier.seconds <= _SECONDS - 0.2
