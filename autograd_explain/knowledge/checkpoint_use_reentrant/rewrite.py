"""`use_reentrant=False`."""

from collections.abc import Iterator

from autograd_explain.model import Finding, What
from autograd_explain.program import Program
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.uncut import apply_patches, keyword_added


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause = finding.event(What.CAUSE)
    if cause is None or cause.place is None:
        return
    edits = apply_patches(keyword_added(program, cause.place, "use_reentrant", "False"))
    if edits:
        yield Proposal("non_reentrant", edits)
