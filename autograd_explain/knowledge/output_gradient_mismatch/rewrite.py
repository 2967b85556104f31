"""Ones in the shape of the output: the gradient of its sum."""

from collections.abc import Iterator

from autograd_explain.model import Finding, Safety, What
from autograd_explain.program import Program
from autograd_explain.rewrite import torch_at
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.call_edits import expression_replaced


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause = finding.event(What.CAUSE)
    if cause is None or cause.place is None or cause.op != "ones":
        return
    torch, root = torch_at(program, cause.place), finding.facts["root"]
    if torch is not None:
        edits = expression_replaced(program, cause.place, f"{torch}.ones_like({root})")
        if edits:
            yield Proposal("ones_like", edits, Safety.CHANGES_MEANING, intended_difference=True)
