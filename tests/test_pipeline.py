"""The stages in order; one that fails is left out, and nothing live gets through."""

import dataclasses
import gc
import pickle
import sys
import weakref
from typing import ClassVar

import pytest
import torch

from autograd_explain import pipeline
from autograd_explain.incident import Incident, frames_of
from autograd_explain.intercept import guard
from autograd_explain.knowledge.entry import BUILT_IN, entries
from autograd_explain.model import (
    Certainty,
    Confidence,
    Edit,
    Event,
    Finding,
    Kind,
    Outcome,
    Place,
    Reason,
    Rewrite,
    Safety,
    What,
)
from autograd_explain.pipeline import UNKNOWN, explain_incident
from autograd_explain.program import Program, Source
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.settings import Options

OPTIONS = Options(language="en")
TEXT = "import torch\nw = torch.ones(2, requires_grad=True)\nh = w * 2\nw += 1\n"
HERE = Place(1, None, 4, "w += 1")


class FakeEntry:
    """An entry as the pipeline sees it."""

    messages: ClassVar[dict] = {}
    folder = BUILT_IN / UNKNOWN
    built_in = True

    def __init__(self, name, confidence=None, propose=None, events=(), crash=None):
        self.name, self.patterns = name, ("leaf-inplace",)
        self.propose, self.asked = propose, 0
        self._answer = None if confidence is None else Finding(name, confidence, {}, events=events)
        self._crash = crash

    def diagnose(self, scene):
        self.asked += 1
        if self._crash is not None:
            raise self._crash
        return self._answer


@pytest.fixture
def causes(monkeypatch):
    """Replace the knowledge base."""
    guard.clear()

    def replace(*fakes):
        known = {e.name: e for e in fakes}
        monkeypatch.setattr(pipeline, "entries", lambda extra=(): known)
        return known

    yield replace
    guard.clear()


def failure(text=TEXT):
    """The incident of a cell that fails."""
    namespace = {}
    try:
        exec(compile(text, "<cell 1>", "exec"), namespace)
    except Exception as error:
        return Incident(
            Kind.ERROR,
            str(error),
            Program([Source(1, None, text, text, "<cell 1>")]),
            namespace,
            frames_of(error.__traceback__),
            exception=error,
            cell=1,
        )
    raise AssertionError("the cell did not fail")


def test_a_foreign_error_is_none():
    assert explain_incident(failure("import torch\ntorch.ones(2) @ torch.ones(3)"), OPTIONS) is None
    assert explain_incident(failure("{}['x']"), OPTIONS) is None


def test_an_assertion_of_the_users_may_quote_any_message():
    message = repr(failure().message)
    assert explain_incident(failure(f"assert not 1, {message}"), OPTIONS) is None
    assert explain_incident(failure(f"raise RuntimeError({message})"), OPTIONS) is not None


def test_the_real_thing():
    explanation = explain_incident(failure(), Options(language="ja", detail="full"))
    assert (explanation.id, explanation.language, explanation.detail) == (
        "leaf_written",
        "ja",
        "full",
    )
    assert explanation.to_dict()["message"].startswith("a leaf Variable that requires grad")


def test_the_strongest_claim_wins(causes):
    causes(
        FakeEntry("a", Confidence.GENERAL),
        FakeEntry("b", Confidence.LIKELY, events=(Event(What.CAUSE, HERE),)),
        FakeEntry("c", Confidence.LIKELY),
        FakeEntry("d"),
    )
    assert explain_incident(failure(), OPTIONS).id == "b"


def test_a_proven_cause_ends_the_search(causes):
    known = causes(FakeEntry("a", Confidence.PROVEN), FakeEntry("b", Confidence.PROVEN))
    assert explain_incident(failure(), OPTIONS).id == "a"
    assert known["b"].asked == 0


def test_a_crashing_entry_does_not_hide_the_others(causes):
    causes(FakeEntry("a", crash=ZeroDivisionError("bug in a")), FakeEntry("b", Confidence.LIKELY))
    assert explain_incident(failure(), OPTIONS).id == "b"
    assert "[diagnose a]" in guard.report() and "bug in a" in guard.report()


def test_an_entry_that_cannot_be_imported(causes):
    class Broken(FakeEntry):
        @property
        def patterns(self):
            raise ImportError("broken module")

        @patterns.setter
        def patterns(self, value):
            pass

    causes(Broken("a"), FakeEntry("b", Confidence.LIKELY))
    assert explain_incident(failure(), OPTIONS).id == "b"
    assert "[cause a]" in guard.report()


def test_unknown_where_no_entry_claims(causes):
    causes(FakeEntry("a"))
    explanation = explain_incident(failure(), OPTIONS)
    assert explanation.id == UNKNOWN
    assert [(e.what, e.place.line) for e in explanation.diagnosis.finding.events] == [
        (What.FAILED, 4)
    ]


def test_a_warning_that_no_entry_claims_is_not_shown(causes):
    causes(FakeEntry("a"))
    incident = failure()
    warning = Incident(Kind.WARNING, incident.message, incident.program, {}, incident.frames)
    assert explain_incident(warning, OPTIONS) is None


def test_a_signal_of_the_recorder_needs_no_message(causes):
    known = causes(FakeEntry("a", Confidence.PROVEN), FakeEntry("b", Confidence.PROVEN))
    known["a"].patterns = ("silent-overwrite",)
    incident = Incident(Kind.SILENT, "", Program(), {}, signal="silent-overwrite")
    explanation = explain_incident(incident, OPTIONS)
    assert (explanation.id, explanation.to_dict()["kind"]) == ("a", "silent")


# Rewrites

EDIT = Edit(1, None, TEXT, TEXT.replace("w += 1", "w = w + 1"))


def proposals(finding, program):
    yield Proposal("out_of_place", (EDIT,), Safety.CHANGES_MEANING, {"name": "w"})
    yield Proposal("no_grad", (EDIT,))


def test_proposals_become_rewrites_in_order(causes):
    causes(FakeEntry("a", Confidence.PROVEN, proposals))
    rewrites = explain_incident(failure(), OPTIONS).diagnosis.rewrites
    assert [r.fix for r in rewrites] == ["out_of_place", "no_grad"]
    assert rewrites[0] == Rewrite(
        "out_of_place", (EDIT,), Safety.CHANGES_MEANING, {"name": "w"}, Outcome.NOT_TRIED
    )


def test_proposals_before_a_crash_are_kept(causes):
    def crash(finding, program):
        yield from proposals(finding, program)
        raise ZeroDivisionError

    causes(FakeEntry("a", Confidence.PROVEN, crash))
    assert len(explain_incident(failure(), OPTIONS).diagnosis.rewrites) == 2
    assert "[rewrite a]" in guard.report()


def test_a_verifier_decides(causes):
    causes(FakeEntry("a", Confidence.PROVEN, proposals))
    seen = []

    def verifier(incident, finding, tried):
        seen.append((incident.cell, finding.cause, len(tried)))
        return (Rewrite("no_grad", (EDIT,), Safety.SAME_GRADIENTS, outcome=Outcome.VERIFIED),)

    explanation = explain_incident(failure(), OPTIONS, verifier=verifier)
    assert [r.outcome for r in explanation.diagnosis.rewrites] == [Outcome.VERIFIED]
    assert seen == [(1, "a", 2)]


def test_a_verifier_that_crashes(causes):
    causes(FakeEntry("a", Confidence.PROVEN, proposals))
    explanation = explain_incident(failure(), OPTIONS, verifier=lambda *a: 1 / 0)
    assert [r.outcome for r in explanation.diagnosis.rewrites] == [Outcome.NOT_TRIED] * 2
    assert "[verify]" in guard.report()


def test_notes_are_passed_on():
    notes = (Reason("interrupted"),)
    assert explain_incident(failure(), OPTIONS, notes=notes).diagnosis.notes == notes


@pytest.mark.parametrize(("cell", "key"), [(2, "recorded_from"), (1, "recorded_next")])
def test_statements_of_earlier_cells_do_not_run_again(causes, cell, key):
    causes(FakeEntry("a", Confidence.PROVEN, events=(Event(What.CHANGED, HERE),)))
    incident = dataclasses.replace(failure(), cell=cell)
    (note,) = explain_incident(incident, OPTIONS, notes=(Reason("recorded_next"),)).diagnosis.notes
    assert note.key == key


def test_what_was_observed_needs_no_other_run(causes):
    seen = Event(What.CHANGED, HERE, certainty=Certainty.OBSERVED)
    causes(FakeEntry("a", Confidence.PROVEN, events=(seen,)))
    assert (
        explain_incident(failure(), OPTIONS, notes=(Reason("recorded_next"),)).diagnosis.notes == ()
    )


# Every stage may fail

STAGES = {
    "inspect": "autograd_explain.inspect.scene.Scene.__init__",
    "diagnose leaf_written": "autograd_explain.inspect.scene.Scene.fact",
    "rewrite leaf_written": "autograd_explain.knowledge.entry.Entry.propose",
}


@pytest.mark.parametrize(("stage", "target"), STAGES.items())
def test_a_failing_stage_leaves_the_rest(stage, target, monkeypatch):
    def explode(*args, **options):
        raise ZeroDivisionError("ours")

    guard.clear()
    broken = property(explode) if target.endswith("propose") else explode
    monkeypatch.setattr(target, broken)
    explanation = explain_incident(failure(), OPTIONS)
    assert explanation is not None
    assert f"[{stage}]" in guard.report()
    guard.clear()


def test_our_own_calls_are_hidden_from_function_modes():
    from torch.overrides import TorchFunctionMode

    class Spy(TorchFunctionMode):
        def __init__(self):
            super().__init__()
            self.seen = []

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.seen.append(func)
            return func(*args, **(kwargs or {}))

    incident = failure()
    with Spy() as spy:
        explain_incident(incident, OPTIONS)
    assert spy.seen == []


def test_the_users_tensors_and_random_state_are_untouched():
    incident = failure()
    w, h = incident.namespace["w"], incident.namespace["h"]
    before = (w._version, h._version, w.grad, torch.random.get_rng_state())
    explain_incident(incident, OPTIONS)
    after = (w._version, h._version, w.grad, torch.random.get_rng_state())
    assert before[:3] == after[:3] and torch.equal(before[3], after[3])


def test_nothing_live_gets_through():
    incident = failure()
    alive = [weakref.ref(incident.namespace[name]) for name in ("w", "h")]
    explanation = explain_incident(incident, OPTIONS)
    assert pickle.loads(pickle.dumps(explanation)).to_dict() == explanation.to_dict()
    if hasattr(sys, "last_value"):
        del sys.last_value
    del incident
    gc.collect()
    assert [reference() for reference in alive] == [None, None]


def test_every_entry_is_asked_by_its_patterns_only():
    match = pipeline.recognise(failure(), entries())
    for entry in pipeline.candidates(match, entries()):
        assert {match.pattern, *match.siblings}.intersection(entry.patterns)
