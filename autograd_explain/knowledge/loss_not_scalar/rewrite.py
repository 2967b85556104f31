"""One number to differentiate: the mean, the sum, or the real part."""

from collections.abc import Iterator

from autograd_explain.model import Finding, Safety, What
from autograd_explain.program import Program
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.call_edits import call_behind, expression_replaced


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause = finding.event(What.CAUSE)
    if cause is None or cause.place is None:
        return
    if cause.op == "complex":
        edits = expression_replaced(program, cause.place, "{x}.real")
        if edits:
            yield _choice("real", edits)
        return
    for how in ("mean", "sum") if cause.op == "mean" else ("sum", "mean"):
        edits = call_behind(program, cause.place, how)
        if edits:
            yield _choice(how, edits)


def _choice(fix: str, edits: tuple) -> Proposal:  # type: ignore[type-arg]
    return Proposal(fix, edits, Safety.CHANGES_MEANING, intended_difference=True)
