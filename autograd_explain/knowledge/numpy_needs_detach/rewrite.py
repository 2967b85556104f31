"""Store numbers where only numbers are wanted; detach where an array is wanted."""

from collections.abc import Iterator

from autograd_explain.model import Event, Finding, Place, Safety, What
from autograd_explain.program import Program
from autograd_explain.rewrite.proposal import Proposal
from autograd_explain.rewrite.uncut import (
    Patch,
    apply_patches,
    called,
    code_of,
    node_at,
    replacement,
    round_trip_in_torch,
)


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    stores = [e for e in finding.events if e.what is What.CAUSE and e.op in ("item", "detach")]
    edits = apply_patches(p for e in stores for p in _stored(program, e))
    if edits:
        yield Proposal("store_number" if stores[0].op == "item" else "store_detached", edits)
    for how, (read, *_) in finding.places.items():
        edits = apply_patches(round_trip_in_torch(program, read))
        if edits:
            yield Proposal("in_torch", edits, Safety.CHANGES_MEANING, intended_difference=True)
        edits = apply_patches(_read(program, read, how))
        if edits:
            yield Proposal("detach", edits)


def _stored(program: Program, event: Event) -> list[Patch]:
    """`self.losses.append(loss)` -> `self.losses.append(loss.item())`."""
    return called(program, event.place, event.op or "detach")


def _read(program: Program, place: Place, how: str) -> list[Patch]:
    if how == "before_numpy":
        return called(program, place, "detach")
    if how == "as_array":
        return called(program, place, "detach().numpy")
    node = node_at(program, place)
    if node is None:
        return []
    code = code_of(program, place, node)
    return replacement(program, place, f"[value.detach() for value in {code}]")
