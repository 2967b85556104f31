"""New values for the parameter that is there, or a new parameter."""

from collections.abc import Iterator

from autograd_explain.model import Finding, What
from autograd_explain.program import Program
from autograd_explain.rewrite import torch_at
from autograd_explain.rewrite.engine.imports import imports_at
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.call_edits import statement_replaced


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause = finding.event(What.CAUSE)
    if cause is None or cause.place is None or cause.op is None:
        return
    target, value = finding.facts["parameter"], finding.facts["value"]
    torch = torch_at(program, cause.place)
    parameter = imports_at(program, cause.place).local("torch.nn.Parameter")
    if cause.op == "copy" and torch is not None:
        block = f"with {torch}.no_grad():\n    {target}.copy_({value})\n"
        edits = statement_replaced(program, cause.place, block)
        if edits:
            yield Proposal("copy", edits)
    elif parameter is not None and "\n" not in value:
        edits = statement_replaced(program, cause.place, f"{target} = {parameter}({value})\n")
        if edits:
            yield Proposal("parameter", edits)
