"""Keep the value in the graph."""

from collections.abc import Iterator

from autograd_explain.model import Finding, Safety, What
from autograd_explain.program import Program
from autograd_explain.rewrite.engine.proposal import Proposal

from .functional_layer import parameter_as_argument
from .reconnect import reconnected


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    if finding.variant in ("no_grad", "operation"):
        return
    made = next(iter(finding.places.get("parameter", ())), None)
    if made is not None:
        edits = parameter_as_argument(program, made)
        if edits:
            yield Proposal("argument", edits, Safety.CHANGES_MEANING, intended_difference=True)
        return
    events = [e for e in finding.events if e.what is What.CAUSE]
    failed = finding.event(What.FAILED)
    places = [e.place for e in events if e.place is not None]
    edits = reconnected(program, places, None if failed is None else failed.place)
    if edits:
        yield Proposal("reconnect", edits, Safety.CHANGES_MEANING, intended_difference=True)
