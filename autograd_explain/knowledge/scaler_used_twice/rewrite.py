"""One update after the steps; one unscale_ for each."""

from collections.abc import Iterator

from autograd_explain.model import Finding, Safety, What
from autograd_explain.program import Program
from autograd_explain.rewrite import remove_statement
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.call_edits import line_behind


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause = finding.event(What.CAUSE)
    if cause is None or cause.place is None:
        return
    if cause.op == "update":
        edits = line_behind(program, cause.place, f"{finding.facts['scaler']}.update()\n")
        if edits:
            yield Proposal("update", edits, Safety.CHANGES_MEANING, intended_difference=True)
    elif cause.op == "remove":
        edits = remove_statement(program, cause.place)
        if edits:
            yield Proposal("once", edits)
