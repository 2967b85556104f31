"""Let the scheduler count."""

from collections.abc import Iterator

from autograd_explain.model import Finding, Safety, What
from autograd_explain.program import Program
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.call_edits import arguments_emptied


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause = finding.event(What.CAUSE)
    edits = arguments_emptied(program, None if cause is None else cause.place)
    if edits:
        yield Proposal("count", edits, Safety.CHANGES_MEANING, intended_difference=True)
