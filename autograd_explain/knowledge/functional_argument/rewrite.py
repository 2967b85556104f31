"""A tensor of the number."""

from collections.abc import Iterator

from autograd_explain.model import Finding, What
from autograd_explain.program import Program
from autograd_explain.rewrite import torch_at
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.call_edits import expression_replaced


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause = finding.event(What.CAUSE)
    if cause is None or cause.place is None or cause.op != "tensor":
        return
    torch = torch_at(program, cause.place)
    if torch is not None:
        edits = expression_replaced(program, cause.place, f"{torch}.tensor({{x}})")
        if edits:
            yield Proposal("tensor", edits)
