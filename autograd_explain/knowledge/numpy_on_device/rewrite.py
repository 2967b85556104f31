"""A copy in the CPU's memory; a tensor with data instead of one without."""

from collections.abc import Iterator

from autograd_explain.model import Finding, Safety, What
from autograd_explain.program import Program
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.call_edits import (
    call_behind,
    expression_replaced,
    keyword_set,
)


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause = finding.event(What.CAUSE)
    if cause is None or cause.place is None or not cause.op:
        return
    if cause.op == "on cpu":
        edits = keyword_set(program, cause.place, "device", '"cpu"')
        if edits:
            yield Proposal("with_data", edits, Safety.CHANGES_MEANING, intended_difference=True)
        return
    steps = "detach().cpu" if cause.op.endswith("detach") else "cpu"
    if cause.op.startswith("call"):
        edits = call_behind(program, cause.place, steps)
    else:
        edits = expression_replaced(program, cause.place, f"{{x}}.{steps}().numpy()")
    if edits:
        yield Proposal("to_cpu", edits)
