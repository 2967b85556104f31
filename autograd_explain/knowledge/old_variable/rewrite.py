"""A tensor as it is, or made of the number."""

from collections.abc import Iterator

from autograd_explain.model import Finding, Safety, What
from autograd_explain.program import Program
from autograd_explain.rewrite import torch_at
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.call_edits import expression_replaced


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause = finding.event(What.CAUSE)
    if cause is None or cause.place is None or cause.op is None:
        return
    data, torch = finding.facts["data"], torch_at(program, cause.place)
    if cause.op == "plain":
        edits = expression_replaced(program, cause.place, data)
        if edits:
            yield Proposal("plain", edits)
    elif torch is not None:
        edits = expression_replaced(program, cause.place, f"{torch}.tensor({data})")
        if edits:
            yield Proposal("tensor", edits, Safety.CHANGES_MEANING, intended_difference=True)
