"""The block that should end, the decorator that should go, the statement that should be outside."""

from collections.abc import Iterator

from autograd_explain.model import Edit, Finding, Place, What
from autograd_explain.program import Program
from autograd_explain.rewrite import block_instead_of_switch
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.leave_no_grad import (
    block_instead_of_enter,
    decorated_generator,
    mode_of_caller,
    out_of_block,
    without_decorator,
)


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause = finding.event(What.CAUSE)
    if cause is None or cause.place is None:
        return
    for fix, edits in _fixes(finding, program, cause.place, cause.op or ""):
        if edits:
            yield Proposal(fix, edits)


def _fixes(
    finding: Finding, program: Program, place: Place, by: str
) -> Iterator[tuple[str, tuple[Edit, ...] | None]]:
    if by == "switch":
        yield "block", block_instead_of_switch(program, place)
    elif by == "entered":
        yield "block", block_instead_of_enter(program, place)
    elif by == "generator":
        yield "generator", decorated_generator(program, place)
    elif by == "decorator":
        yield "decorator", without_decorator(program, place)
    elif by == "block":
        yield "mode_of_caller", mode_of_caller(program, place)
        needed = finding.places.get("unrecorded", ())
        yield "outside", out_of_block(program, place, list(needed))
