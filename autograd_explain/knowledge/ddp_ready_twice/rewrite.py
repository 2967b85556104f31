"""`use_reentrant=False` in every checkpoint."""

from collections.abc import Iterator

from autograd_explain.model import Finding
from autograd_explain.program import Program
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.uncut import apply_patches, keyword_added


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    places = finding.places.get("checkpoints", ())
    patches = [p for at in places for p in keyword_added(program, at, "use_reentrant", "False")]
    edits = apply_patches(patches) if patches else None
    if edits:
        yield Proposal("non_reentrant", edits)
