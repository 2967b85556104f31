"""Give the optimizer a leaf: compute first and ask for the gradient last, or give it the leaf."""

from collections.abc import Iterator

from autograd_explain.model import Edit, Finding, Place, Safety, What
from autograd_explain.program import Program
from autograd_explain.rewrite import dtype_in_constructor, requires_grad_last
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.keep_gradient import flag_moved, new_leaf

from .table_rewrite import plain_attribute


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause = finding.event(What.CAUSE)
    if cause is None or cause.place is None:
        return
    if finding.variant == "table":
        edits = plain_attribute(program, cause.place) if cause.op == "table" else None
        if edits:
            yield Proposal("attribute", edits)
        return
    seen = set()
    for fix, edits in _fixes(finding, program, cause.place):
        if edits and edits not in seen:
            seen.add(edits)
            new_leaf = fix == "new_leaf"
            safety = Safety.CHANGES_MEANING if new_leaf else Safety.SAME_GRADIENTS
            yield Proposal(fix, edits, safety, intended_difference=new_leaf)


def _fixes(
    finding: Finding, program: Program, place: Place
) -> Iterator[tuple[str, tuple[Edit, ...] | None]]:
    yield "constructor", dtype_in_constructor(program, place)
    yield "requires_grad_last", requires_grad_last(program, place)
    yield "requires_grad_last", flag_moved(finding, program)
    yield "new_leaf", new_leaf(program, place)
