"""The gradient transposed where its sizes are in reverse."""

import re
from collections.abc import Iterator

from autograd_explain.model import Finding, What
from autograd_explain.program import Program
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.call_edits import call_behind


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause = finding.event(What.CAUSE)
    if cause is None or cause.place is None:
        return
    if cause.op == "returned" and finding.variant == "":
        got, expected = _sizes(finding.facts["got"]), _sizes(finding.facts["expected"])
        reverse = len(got) == 2 and got == expected[::-1]
        edits = call_behind(program, cause.place, "t") if reverse else None
        if edits:
            yield Proposal("transpose", edits)


def _sizes(text: str) -> list[int]:
    return [int(n) for n in re.findall(r"\d+", text)]
