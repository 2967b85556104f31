"""The scheduler's step behind the optimizer's."""

from collections.abc import Iterator

from autograd_explain.model import Finding, Safety, What
from autograd_explain.program import Program
from autograd_explain.rewrite import move_after
from autograd_explain.rewrite.engine.proposal import Proposal


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause, step = finding.event(What.CAUSE), finding.places.get("step", ())
    if cause is None or cause.place is None or not step:
        return
    edits = move_after(program, cause.place, step[0])
    if edits:
        yield Proposal("after_step", edits, Safety.CHANGES_MEANING, intended_difference=True)
