"""The ordinary step."""

from collections.abc import Iterator

from autograd_explain.model import Finding, What
from autograd_explain.program import Program
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.call_edits import keyword_removed


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause = finding.event(What.CAUSE)
    if cause is None or cause.op != "fused":
        return
    edits = keyword_removed(program, cause.place, "fused")
    if edits:
        yield Proposal("not_fused", edits)
