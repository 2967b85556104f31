"""`use_reentrant=False`, in every checkpoint that would go on unrecorded."""

from collections.abc import Iterator

from autograd_explain.model import Finding, What
from autograd_explain.program import Program
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.uncut import apply_patches, keyword_added


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    causes = [e for e in finding.events if e.what is What.CAUSE]
    patches = [keyword_added(program, e.place, "use_reentrant", "False") for e in causes]
    edits = apply_patches(p for group in patches for p in group) if all(patches) else None
    if edits:
        yield Proposal("non_reentrant", edits)
