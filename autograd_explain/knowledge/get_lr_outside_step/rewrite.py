"""Ask for the rate that is in use."""

from collections.abc import Iterator

from autograd_explain.model import Finding, What
from autograd_explain.program import Program
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.call_edits import renamed


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause = finding.event(What.CAUSE)
    edits = renamed(program, None if cause is None else cause.place, "{owner}.get_last_lr")
    if edits:
        yield Proposal("last", edits)
