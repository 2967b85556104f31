"""A container that registers what is in it."""

from collections.abc import Iterator

from autograd_explain.model import Finding, Safety, What
from autograd_explain.program import Program
from autograd_explain.rewrite import module_list
from autograd_explain.rewrite.engine.proposal import Proposal


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause = finding.event(What.CAUSE)
    if cause is None or cause.place is None:
        return
    edits = module_list(program, cause.place)
    if edits:
        yield Proposal("module_list", edits, Safety.CHANGES_MEANING, intended_difference=True)
