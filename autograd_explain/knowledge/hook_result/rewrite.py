"""A result of the gradient's shape; no result where the hook only looks."""

from collections.abc import Iterator

from autograd_explain.model import Finding, Safety, What
from autograd_explain.program import Program
from autograd_explain.rewrite.engine.proposal import Proposal

from .gradient_shape import of_gradients_shape, without_result

#: What can be meant for somebody to read, never for the place of a gradient.
_NUMBERS = ("float", "int", "str", "bool", "list", "dict")


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause = finding.event(What.CAUSE)
    if cause is None or cause.place is None:
        return
    if finding.variant == "size":
        edits = of_gradients_shape(program, cause.place, finding.facts["gradient"])
        if edits:
            yield Proposal("shape", edits, Safety.CHANGES_MEANING, intended_difference=True)
    elif finding.variant == "kind" and finding.facts["type"] in _NUMBERS:
        edits = without_result(program, cause.place)
        if edits:
            yield Proposal("nothing", edits)
