"""The value in the dtype or on the device of the tensor; None for no gradient."""

from collections.abc import Iterator

from autograd_explain.model import Finding, What
from autograd_explain.program import Program
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.call_edits import expression_replaced, text_behind


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause = finding.event(What.CAUSE)
    if cause is None or cause.place is None or cause.op is None:
        return
    name = finding.facts["tensor"]
    if cause.op == "none":
        edits = expression_replaced(program, cause.place, "None")
        if edits:
            yield Proposal("none", edits)
        return
    edits = text_behind(program, cause.place, f"to({name}.{cause.op})")
    if edits:
        yield Proposal("convert", edits)
