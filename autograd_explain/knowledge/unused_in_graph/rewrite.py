"""Take out the cut; ask for the tensor that was used; or accept that the input is unused."""

import ast
from collections.abc import Iterator
from dataclasses import replace

from autograd_explain.model import Edit, Event, Finding, Place, Safety, What
from autograd_explain.program import Program
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.call_edits import expression_replaced
from autograd_explain.rewrite.transforms.leave_no_grad import out_of_block, without_decorator
from autograd_explain.rewrite.transforms.uncut import (
    Patch,
    apply_patches,
    node_at,
    round_trip_in_torch,
    tensors_instead_of_copy,
    without_cut,
)

from .unused import unused_allowed, unused_as_zeros


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause = finding.event(What.CAUSE)
    if cause is None or cause.place is None:
        return
    if finding.variant == "cut":
        yield from _connected(finding, program, cause)
    used = finding.facts.get("used", "")
    if used and cause.op == "input":
        edits = expression_replaced(program, cause.place, used)
        if edits:
            yield Proposal("use_source", edits, Safety.CHANGES_MEANING, intended_difference=True)
    asked = next(iter(finding.places.get("input", ())), cause.place)
    if finding.facts.get("inputs", "1") != "1" and not finding.variant:
        # One loss of several skips a part of the parameters: its gradient is zero.
        edits = unused_as_zeros(program, asked)
        if edits:
            yield Proposal("zeros", edits, Safety.CHANGES_MEANING, intended_difference=True)
    edits = unused_allowed(program, asked)
    if edits:
        yield Proposal("allow_unused", edits, Safety.CHANGES_MEANING, intended_difference=True)


def _connected(finding: Finding, program: Program, cause: Event) -> Iterator[Proposal]:
    """Every cut on the way goes, so that the result depends on the input."""
    cuts = [e for e in finding.events if e.what is What.CAUSE]
    unrecorded = finding.places.get("unrecorded", ())
    if len(cuts) == 1 and cause.place is not None:
        if cause.op == "decorator":
            yield from _proposed("record", without_decorator(program, cause.place))
        elif cause.op == "block":
            yield from _proposed("record", out_of_block(program, cause.place, list(unrecorded)))
    patches = [_uncut(program, cut) for cut in cuts]
    if all(patches):
        yield from _proposed("uncut", apply_patches(p for group in patches for p in group))


def _uncut(program: Program, cut: Event) -> list[Patch]:
    if cut.op in ("detach", "number"):
        return without_cut(program, cut.place)
    if cut.op == "numpy":
        return round_trip_in_torch(program, cut.place)
    return _without_copy(program, cut.place) if cut.op == "copy" else []


def _without_copy(program: Program, place: Place | None) -> list[Patch]:
    """`torch.from_numpy(x.detach().numpy())` -> `x`."""
    node, source = node_at(program, place), program.source_at(place) if place else None
    if not isinstance(node, ast.Call) or not node.args or place is None or source is None:
        return []
    inner = without_cut(program, replace(place, span=source.span(node.args[0])))
    return [*tensors_instead_of_copy(program, place, False), *inner]


def _proposed(fix: str, edits: tuple[Edit, ...] | None) -> Iterator[Proposal]:
    if edits:
        yield Proposal(fix, edits, intended_difference=True)
