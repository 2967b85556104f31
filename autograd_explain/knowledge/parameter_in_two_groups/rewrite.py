"""Each parameter in one group only."""

from collections.abc import Iterator

from autograd_explain.model import Finding, Safety, What
from autograd_explain.program import Program
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.call_edits import expression_replaced


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause, second = finding.event(What.CAUSE), finding.places.get("second", ())
    if cause is None or cause.place is None:
        return
    first, last = finding.facts["first"], finding.facts["second"]
    if cause.op == "unique":
        edits = expression_replaced(program, cause.place, "list(dict.fromkeys({x}))")
        if edits:
            yield Proposal("unique", edits)
    elif cause.op == "rest":
        outer, inner = (text.removesuffix(".parameters()") for text in (first, last))
        prefix = inner.removeprefix(f"{outer}.")
        rest = f'[p for n, p in {outer}.named_parameters() if not n.startswith("{prefix}.")]'
        edits = expression_replaced(program, cause.place, rest)
        if edits:
            yield Proposal("rest", edits, Safety.CHANGES_MEANING, intended_difference=True)
    elif cause.op == "without" and second:
        without = f"[p for p in {{x}} if all(p is not q for q in {first})]"
        edits = expression_replaced(program, second[0], without)
        if edits:
            yield Proposal("without", edits, Safety.CHANGES_MEANING, intended_difference=True)
