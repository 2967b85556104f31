"""Go backward from the tensor in the object, or from the sum of them; call the method."""

from collections.abc import Iterator

from autograd_explain.model import Finding, Place, Safety, What
from autograd_explain.program import Program
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.uncut import apply_patches, code_of, node_at, replacement


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    roots, makers = finding.places.get("root", ()), finding.places.get("maker", ())
    cause = finding.event(What.CAUSE)
    if finding.facts["part"]:
        yield from _instead(program, roots, "part", finding.facts["part"])
    elif cause is not None and cause.op == "add":
        yield from _instead(program, roots, "add", f"sum({finding.facts['object']})")
    for place in makers:
        node = node_at(program, place)
        code = "" if node is None else f"{code_of(program, place, node)}()"
        yield from _instead(program, (place,), "call", code)


def _instead(
    program: Program, places: tuple[Place, ...], fix: str, code: str
) -> Iterator[Proposal]:
    edits = apply_patches(p for place in places for p in replacement(program, place, code))
    if edits:
        yield Proposal(fix, edits, Safety.CHANGES_MEANING, intended_difference=True)
