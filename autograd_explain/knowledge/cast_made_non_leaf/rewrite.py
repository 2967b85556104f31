"""Make the result the leaf; where the leaf has a name of its own, keep the gradient as well."""

from collections.abc import Iterator

from autograd_explain.model import Edit, Finding, Place, Safety, What
from autograd_explain.program import Program
from autograd_explain.rewrite import dtype_in_constructor, requires_grad_last
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.keep_gradient import (
    flag_moved,
    in_place_update,
    new_leaf,
    retained,
)


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause = finding.event(What.CAUSE)
    if cause is None or cause.place is None:
        return
    seen = set()
    for fix, edits in _fixes(finding, program, cause.place):
        if edits and edits not in seen:
            seen.add(edits)
            safety = Safety.CHANGES_MEANING if fix == "new_leaf" else Safety.SAME_GRADIENTS
            yield Proposal(fix, edits, safety, intended_difference=fix == "new_leaf")


def _fixes(
    finding: Finding, program: Program, place: Place
) -> Iterator[tuple[str, tuple[Edit, ...] | None]]:
    if finding.variant == "update":
        yield "update", in_place_update(program, place)
        return
    if finding.variant == "":
        yield "constructor", dtype_in_constructor(program, place)
        yield "requires_grad_last", requires_grad_last(program, place)
        yield "requires_grad_last", flag_moved(finding, program)
    yield "retain_grad", retained(program, finding)
    if finding.variant == "":
        yield "new_leaf", new_leaf(program, place)
