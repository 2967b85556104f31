"""The gradient transposed where its sizes are in reverse; values exchanged after backward."""

import re
from collections.abc import Iterator

from autograd_explain.model import Finding, What
from autograd_explain.program import Program
from autograd_explain.rewrite import move_after
from autograd_explain.rewrite.calls import call_behind
from autograd_explain.rewrite.proposal import Proposal


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause, failed = finding.event(What.CAUSE), finding.event(What.FAILED)
    if cause is None or cause.place is None:
        return
    if cause.op == "returned" and finding.variant == "":
        got, expected = _sizes(finding.facts["got"]), _sizes(finding.facts["expected"])
        reverse = len(got) == 2 and got == expected[::-1]
        edits = call_behind(program, cause.place, "t") if reverse else None
        if edits:
            yield Proposal("transpose", edits)
    elif cause.op == "exchange" and failed is not None and failed.place is not None:
        edits = move_after(program, cause.place, failed.place)
        if edits:
            yield Proposal("later", edits)


def _sizes(text: str) -> list[int]:
    return [int(n) for n in re.findall(r"\d+", text)]
