"""View and write on the same side: both recorded, or, for an update of a parameter, neither."""

from __future__ import annotations

from collections.abc import Iterator

from autograd_explain.model import Edit, Finding, What
from autograd_explain.program import Program
from autograd_explain.rewrite import under_no_grad
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.indexed_loop import index_at_write
from autograd_explain.rewrite.transforms.leave_no_grad import out_of_block, without_decorator

Edits = tuple[Edit, ...] | None


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    for fix, edits in _fixes(finding, program):
        if edits:
            yield Proposal(fix, edits)


def _fixes(finding: Finding, program: Program) -> Iterator[tuple[str, Edits]]:
    write, made = finding.event(What.CHANGED), finding.event(What.CREATED)
    if finding.variant == "parameter" and write is not None and write.place is not None:
        yield "write_unrecorded", under_no_grad(program, write.place)
        return
    if not finding.places:  # what turned gradients off is unknown
        return
    if made is not None and made.op == "key" and made.place is not None and write is not None:
        names = finding.facts["tensor"], finding.facts["base"]
        yield "index_at_write", index_at_write(program, made.place, write.place, *names)
    for decorator in finding.places.get("decorator", ()):
        yield "decorator", without_decorator(program, decorator)
    if made is not None and made.place is not None:
        for block in finding.places.get("block", ()):
            yield "view_recorded", out_of_block(program, block, [made.place])
