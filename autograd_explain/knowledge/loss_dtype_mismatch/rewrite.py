"""The target in the dtype of the prediction."""

from collections.abc import Iterator

from autograd_explain.model import Finding, Safety, What
from autograd_explain.program import Program
from autograd_explain.rewrite import torch_at
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.call_edits import call_behind, expression_replaced

_METHODS = {"float32": "float", "float64": "double", "float16": "half", "bfloat16": "bfloat16"}


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause = finding.event(What.CAUSE)
    if cause is None or cause.place is None or cause.op is None:
        return
    if cause.op in _METHODS:
        edits = call_behind(program, cause.place, _METHODS[cause.op])
    else:
        torch = torch_at(program, cause.place)
        edits = expression_replaced(program, cause.place, f"{{x}}.to({torch}.{cause.op})")
    if edits:
        yield Proposal("cast_target", edits, Safety.CHANGES_MEANING, intended_difference=True)
