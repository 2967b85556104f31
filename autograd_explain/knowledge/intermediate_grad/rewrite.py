"""Ask for the gradient before backward runs."""

from collections.abc import Iterator

from autograd_explain.model import Finding
from autograd_explain.program import Program
from autograd_explain.rewrite.keep_gradient import retained
from autograd_explain.rewrite.proposal import Proposal


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    edits = retained(program, finding)
    if edits:
        yield Proposal("retain_grad", edits)
