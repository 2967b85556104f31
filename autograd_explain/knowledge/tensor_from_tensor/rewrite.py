"""The copy spelled out; where the source requires grad, also the copy that keeps the graph."""

from collections.abc import Iterator

from autograd_explain.model import Finding, Safety, What
from autograd_explain.program import Program
from autograd_explain.rewrite.engine.proposal import Proposal

from .copies import tensor_copy


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause = finding.event(What.CAUSE)
    if cause is None or cause.place is None:
        return
    edits = tensor_copy(program, cause.place)
    if edits:
        yield Proposal("detach_clone", edits)
    if finding.variant == "graph":
        edits = tensor_copy(program, cause.place, keep_graph=True)
        if edits:
            yield Proposal("clone", edits, Safety.CHANGES_MEANING, intended_difference=True)
