"""Memory of its own before it is written."""

from collections.abc import Iterator

from autograd_explain.model import Finding, What
from autograd_explain.program import Program
from autograd_explain.rewrite.calls import call_behind
from autograd_explain.rewrite.proposal import Proposal


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause = finding.event(What.CAUSE)
    if cause is None or cause.op != "clone":
        return
    edits = call_behind(program, cause.place, "clone")
    if edits:
        yield Proposal("clone", edits)
