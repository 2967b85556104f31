"""One step a batch, as the schedule was planned."""

from collections.abc import Iterator

from autograd_explain.model import Finding, Safety, What
from autograd_explain.program import Program
from autograd_explain.rewrite import remove_statement
from autograd_explain.rewrite.engine.proposal import Proposal


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause = finding.event(What.CAUSE)
    if cause is None or cause.place is None or cause.op != "extra":
        return
    edits = remove_statement(program, cause.place)
    if edits:
        yield Proposal("once", edits, Safety.CHANGES_MEANING, intended_difference=True)
