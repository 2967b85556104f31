"""Cut the graph where a state is carried on, compute shared parts again, or keep the graph."""

from __future__ import annotations

from collections.abc import Iterator

from autograd_explain.model import Edit, Finding, Place, Role, Safety, What
from autograd_explain.program import Program
from autograd_explain.rewrite import detach_after, detach_expression, detach_use, keep_graph
from autograd_explain.rewrite.proposal import Proposal

Edits = tuple[Edit, ...] | None


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    if finding.variant == "carried":
        yield from _carried(finding, program)
    elif finding.variant in ("same_loss", "shared"):
        yield from _kept(finding, program)


def _carried(finding: Finding, program: Program) -> Iterator[Proposal]:
    """The state goes on without its history; where it is cut differs with how it is kept."""
    seen = set()
    for edits in _cuts(finding, program):
        if edits and edits not in seen:
            seen.add(edits)
            yield Proposal("detach_state", edits, Safety.CHANGES_MEANING, intended_difference=True)


def _cuts(finding: Finding, program: Program) -> Iterator[Edits]:
    maker, failed = _place(finding, What.CAUSE), _place(finding, What.FAILED)
    name, kept = finding.facts["state"], finding.facts["state_kind"]
    several = kept == "tuple"
    if failed is not None and name:
        yield detach_after(program, failed, name, state=several)
    fact = finding.tensor(Role.CULPRIT)
    for target in fact.names if fact is not None and maker is not None else ():
        yield detach_expression(program, maker, target, state=several)
        yield detach_use(program, maker, target, state=several)


def _kept(finding: Finding, program: Program) -> Iterator[Proposal]:
    first = _place(finding, What.FREED)
    edits = None if first is None else keep_graph(program, first)
    if edits:
        yield Proposal("retain_graph", edits, Safety.SAME_GRADIENTS)


def _place(finding: Finding, what: What) -> Place | None:
    event = finding.event(what)
    return None if event is None else event.place
