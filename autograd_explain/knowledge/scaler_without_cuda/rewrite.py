"""Switch the scaler on where CUDA is."""

from collections.abc import Iterator

from autograd_explain.model import Finding, What
from autograd_explain.program import Program
from autograd_explain.rewrite import torch_at
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.call_edits import keyword_set


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause = finding.event(What.CAUSE)
    if cause is None or cause.place is None:
        return
    torch = torch_at(program, cause.place)
    if torch is not None:
        edits = keyword_set(program, cause.place, "enabled", f"{torch}.cuda.is_available()")
        if edits:
            yield Proposal("enabled", edits)
