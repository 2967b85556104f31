"""The result under the name of the buffer."""

from collections.abc import Iterator

from autograd_explain.model import Finding, What
from autograd_explain.program import Program
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.call_edits import (
    keyword_removed,
    statement_replaced,
    without_keyword,
)


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause = finding.event(What.CAUSE)
    if cause is None or cause.place is None or cause.op is None:
        return
    if cause.op == "value":
        edits = keyword_removed(program, cause.place, "out")
    else:
        code = without_keyword(program, cause.place, "out")
        out = finding.facts["out"]
        edits = statement_replaced(program, cause.place, f"{out} = {code}\n") if code else None
    if edits:
        yield Proposal("assign", edits)
