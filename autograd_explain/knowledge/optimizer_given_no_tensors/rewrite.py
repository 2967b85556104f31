"""A list of tensors made of what was given."""

from collections.abc import Iterator

from autograd_explain.model import Edit, Event, Finding, Place, What
from autograd_explain.program import Program
from autograd_explain.rewrite.calls import expression_replaced, renamed
from autograd_explain.rewrite.proposal import Proposal
from autograd_explain.rewrite.uncut import Patch, apply_patches, code_of, node_at


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause = finding.event(What.CAUSE)
    if cause is None or cause.place is None or not cause.op:
        return
    edits = _edits(finding, program, cause.place, cause.op)
    if edits:
        yield Proposal(cause.op, edits)


def _edits(finding: Finding, program: Program, place: Place, how: str) -> tuple[Edit, ...] | None:
    if how == "wrap":
        return expression_replaced(program, place, "[{x}]")
    if how == "values":
        return expression_replaced(program, place, "list({x}.values())")
    if how == "parameters":
        return renamed(program, place, "{owner}.parameters")
    parts = [e for e in finding.events if e.what is What.DETACHED]
    return apply_patches(p for e in parts for p in _unpacked(program, e))


def _unpacked(program: Program, event: Event) -> list[Patch]:
    """`net` -> `*net.parameters()`, `params` -> `*params`"""
    place, source = event.place, None if event.place is None else program.source_at(event.place)
    node = node_at(program, place)
    if place is None or place.span is None or source is None or node is None:
        return []
    behind = ".parameters()" if event.op == "module" else ""
    return [Patch(source, place.span, f"*{code_of(program, place, node)}{behind}")]
