"""A list of tensors made of what was given."""

from collections.abc import Iterator

from autograd_explain.model import Edit, Finding, Place, What
from autograd_explain.program import Program
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.call_edits import expression_replaced, renamed
from autograd_explain.rewrite.transforms.uncut import Patch, apply_patches, code_of, node_at


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
    behind = {"module": ".parameters()", "iterable": ""}
    parts = [(p, text) for kind, text in behind.items() for p in finding.places.get(kind, ())]
    return apply_patches(patch for p, text in parts for patch in _unpacked(program, p, text))


def _unpacked(program: Program, place: Place, behind: str) -> list[Patch]:
    """`net` -> `*net.parameters()`, `params` -> `*params`"""
    source, node = program.source_at(place), node_at(program, place)
    if place.span is None or source is None or node is None:
        return []
    return [Patch(source, place.span, f"*{code_of(program, place, node)}{behind}")]
