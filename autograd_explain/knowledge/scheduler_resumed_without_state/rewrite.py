"""The saved state first; or the initial rate noted, or no `last_epoch` at all."""

from collections.abc import Iterator

from autograd_explain.model import Finding, Safety, What
from autograd_explain.program import Program
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.call_edits import (
    called_sooner,
    keyword_removed,
    line_before,
)


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause, load = finding.event(What.CAUSE), finding.places.get("load", ())
    if cause is None or cause.place is None:
        return
    if cause.op == "order" and load:
        edits = called_sooner(program, load[0], cause.place)
        if edits:
            yield Proposal("load_first", edits)
    if cause.op == "fresh":
        edits = keyword_removed(program, cause.place, "last_epoch")
        if edits:
            yield Proposal("fresh", edits, Safety.CHANGES_MEANING, intended_difference=True)
    elif cause.op == "resumed":
        optimizer = finding.facts["optimizer"]
        lines = (
            f"for group in {optimizer}.param_groups:\n"
            '    group.setdefault("initial_lr", group["lr"])\n'
        )
        edits = line_before(program, cause.place, lines)
        if edits:
            yield Proposal("initial_rate", edits, Safety.CHANGES_MEANING, intended_difference=True)
