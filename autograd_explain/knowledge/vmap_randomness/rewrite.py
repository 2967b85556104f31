"""`randomness="different"` in the call of `vmap`."""

from collections.abc import Iterator

from autograd_explain.model import Finding
from autograd_explain.program import Program
from autograd_explain.program_index import index_of
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.uncut import apply_patches, keyword_added


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    found = list(index_of(program).calls("vmap"))
    if len(found) == 1:
        source, call = found[0]
        place = source.place(call.lineno, None, call)
        edits = apply_patches(keyword_added(program, place, "randomness", '"different"'))
        if edits:
            yield Proposal("different", edits)
