"""Ask for the gradient of the tensor that was used; or take the answer "not used" as it is."""

from collections.abc import Iterator

from autograd_explain.inspect.statements import statement_at
from autograd_explain.model import Finding, Place, Safety, What
from autograd_explain.program import Program
from autograd_explain.rewrite.calls import expression_replaced
from autograd_explain.rewrite.proposal import Proposal
from autograd_explain.rewrite.unused import unused_allowed


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause = finding.event(What.CAUSE)
    if cause is None or cause.place is None:
        return
    used = finding.facts.get("used", "")
    if used and cause.op == "input" and _visible(program, cause.place, used):
        edits = expression_replaced(program, cause.place, used)
        if edits:
            yield Proposal("use_source", edits, Safety.CHANGES_MEANING, intended_difference=True)
    edits = unused_allowed(program, cause.place)
    if edits:
        yield Proposal("allow_unused", edits, Safety.CHANGES_MEANING, intended_difference=True)


def _visible(program: Program, place: Place, name: str) -> bool:
    """A name of the notebook's top level can be written at a line of the top level."""
    return statement_at(program, place) is not None and (place.function is None or "." in name)
