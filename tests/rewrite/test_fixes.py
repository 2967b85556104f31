"""The table of a cause's fixes."""

from __future__ import annotations

from dataclasses import dataclass

from rewriting import program_of, spot

from autograd_explain.model import Confidence, Edits, Event, Finding, Place, Safety, What
from autograd_explain.program import Program
from autograd_explain.rewrite import Fix, Propose, Site, at_place, by_table, differing
from autograd_explain.rewrite.transforms.spot import Spot

PROGRAM = program_of("loss = model(x)\nloss.backward()")


@dataclass(frozen=True)
class Details:
    method: str


def finding(method: str, what: What = What.CAUSE) -> Finding[Details]:
    event = Event(what, spot(PROGRAM, "model(x)"))
    return Finding("none", Confidence.PROVEN, {}, events=(event,), details=Details(method))


def reduced(site: Site[Details]) -> tuple | None:  # type: ignore[type-arg]
    return site.called(site.details.method)


def meant(program: Program, place: Place) -> Edits | None:
    return Spot(program, place).called("mean")


PROPOSE: Propose[Details] = by_table(
    Fix("never", reduced, when=lambda d: False),
    Fix("none", lambda site: None),
    Fix("asked", reduced, changes=True),
    Fix("again", reduced),
    Fix("mean", at_place(meant), intended_difference=True),
)


def test_rows_that_fit_in_order() -> None:
    first, second = PROPOSE(finding("sum"), PROGRAM)
    assert (first.fix, second.fix) == ("asked", "mean")
    assert "model(x).sum()" in first.edits[0].new_source
    assert first.safety is Safety.CHANGES_MEANING and first.intended_difference
    assert second.safety is Safety.SAME_GRADIENTS and second.intended_difference


def test_the_same_edits_are_proposed_once() -> None:
    assert [p.fix for p in PROPOSE(finding("mean"), PROGRAM)] == ["asked"]


def test_nothing_is_proposed_where_the_place_is_unknown() -> None:
    assert not list(PROPOSE(finding("sum", What.FAILED), PROGRAM))
    at_failure = by_table(Fix("asked", reduced), at=What.FAILED)
    assert [p.fix for p in at_failure(finding("sum", What.FAILED), PROGRAM)] == ["asked"]


def test_a_row_may_be_a_function_and_what_it_proposes_comes_once() -> None:
    propose: Propose[Details] = by_table(
        lambda site: differing("first", reduced(site)), Fix("again", reduced), at=What.CAUSE
    )
    (only,) = propose(finding("sum"), PROGRAM)
    assert only.fix == "first" and only.intended_difference
