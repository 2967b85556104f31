"""Dense gradients for a dense optimizer, or the optimizer for dense gradients."""

from collections.abc import Iterator

from autograd_explain.model import Finding, Safety, What
from autograd_explain.program import Program
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.call_edits import keyword_removed, renamed


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause = finding.event(What.CAUSE)
    if cause is None or cause.place is None:
        return
    if cause.op == "sparse":
        edits = keyword_removed(program, cause.place, "sparse")
        if edits:
            yield Proposal("dense", edits)
    else:
        edits = renamed(program, cause.place, "{owner}.Adam")
        if edits:
            yield Proposal("adam", edits, Safety.CHANGES_MEANING, intended_difference=True)
