"""Let the module know its layers, or keep the parameters in a list that can be read twice."""

from collections.abc import Iterator

from autograd_explain.model import Finding, What
from autograd_explain.program import Program
from autograd_explain.rewrite import module_list, parameter_attribute
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.call_edits import expression_replaced


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause = finding.event(What.CAUSE)
    if cause is None or cause.place is None:
        return
    attribute = finding.facts.get("attribute", "")
    if cause.op == "plain_list":
        edits, fix = module_list(program, cause.place, attribute), "module_list"
    elif cause.op == "plain_tensor":
        edits, fix = parameter_attribute(program, cause.place, attribute), "parameter"
    elif cause.op == "used_up":
        edits, fix = expression_replaced(program, cause.place, "list({x})"), "list"
    else:
        return
    if edits:
        yield Proposal(fix, edits)
