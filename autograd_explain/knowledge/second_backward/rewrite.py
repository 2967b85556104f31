"""Cut the graph where a state is carried on, compute shared parts again, or keep the graph."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from autograd_explain.model import Edit, Finding, Place, Role, Safety, What
from autograd_explain.program import Program
from autograd_explain.rewrite import detach_after, detach_expression, detach_use, keep_graph
from autograd_explain.rewrite.engine.edits import then
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.backward import bound_again, clear_after
from autograd_explain.rewrite.transforms.detach import detached_at
from autograd_explain.rewrite.transforms.recompute import (
    compute_all_in_loop,
    recompute_before,
    repeat_inside,
)
from autograd_explain.rewrite.transforms.uncut import node_at

from .as_property import attributes_as_properties
from .attribute import recompute_attribute
from .remove_memoization import always_computed, without_memory

Edits = tuple[Edit, ...] | None


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    if finding.variant == "remembered":
        yield from _not_remembered(finding, program)
    elif finding.variant == "carried":
        stored = finding.places.get("stored", ())
        yield from _detached(program, stored[0]) if stored else _carried(finding, program)
    elif finding.variant in ("same_loss", "shared"):
        # A step that may write what the shared part saved: keeping the graph comes last.
        first, last = (_again, _kept) if finding.facts["step"] else (_kept, _again)
        yield from first(finding, program)
        yield from _ended_for_first(finding, program)
        yield from last(finding, program)
    elif finding.variant == "shared_apart":
        yield from _ended_for_first(finding, program)
        yield from _kept(finding, program)
    elif finding.variant == "computed_once":
        stored = () if "constructor" in finding.places else finding.places.get("stored", ())
        for place in stored:
            yield from _detached(program, place)
        yield from _every_round(finding, program)
        yield from _attribute_every_round(finding, program)
    elif finding.variant == "closure":
        yield from _in_closure(finding, program)
    elif finding.variant == "saved_read":
        yield from _kept(finding, program)
    elif finding.variant == "shared_stepped":
        yield from _detached_first(finding, program)
        yield from _again(finding, program)


def _every_round(finding: Finding, program: Program) -> Iterator[Proposal]:
    """The old statements move into the loop, oldest first, before their first use."""
    use, old = finding.places.get("use", ()), finding.places.get("old", ())
    edits = compute_all_in_loop(program, old, use[0]) if use and old else None
    if edits:
        yield Proposal("recompute_in_loop", edits, Safety.CHANGES_MEANING, intended_difference=True)


def _attribute_every_round(finding: Finding, program: Program) -> Iterator[Proposal]:
    """What a constructor computed (`self.reg = …`) becomes a property, or gets a method that is
    called before each use."""
    made, use = finding.places.get("constructor", ()), finding.places.get("attribute_use", ())
    edits = attributes_as_properties(program, made, use) if made and use else None
    if edits:
        yield Proposal("when_read", edits, Safety.CHANGES_MEANING, intended_difference=True)
        return
    fact = finding.tensor(Role.CULPRIT)
    names = () if fact is None else fact.names
    for name in dict.fromkeys(n.rpartition(".")[2] for n in names if "." in n):
        edits = recompute_attribute(program, made[0], use[-1], name) if made and use else None
        if edits:
            yield Proposal(
                "recompute_in_loop", edits, Safety.CHANGES_MEANING, intended_difference=True
            )
            return


def _not_remembered(finding: Finding, program: Program) -> Iterator[Proposal]:
    """What a function remembers from its first call is computed at every call."""
    cause = _place(finding, What.CAUSE)
    edits = None
    if cause is not None:
        edits = without_memory(program, cause) or always_computed(program, cause)
    if edits:
        yield Proposal("not_remembered", edits, Safety.CHANGES_MEANING, intended_difference=True)


def _detached(program: Program, place: Place) -> Iterator[Proposal]:
    edits = detached_at(program, place)
    if edits:
        yield Proposal("detach_kept", edits, Safety.CHANGES_MEANING, intended_difference=True)


def _ended_for_first(finding: Finding, program: Program) -> Iterator[Proposal]:
    """`D(fake.detach())` in the first loss alone: the graph of `fake` is left to the second."""
    uses = finding.places.get("first_uses", ())
    edits = detached_at(program, *uses) if uses else None
    if edits:
        yield Proposal("detach_first", edits, Safety.CHANGES_MEANING, intended_difference=True)


def _in_closure(finding: Finding, program: Program) -> Iterator[Proposal]:
    """The statement that computed the loss is repeated inside the function the step calls."""
    kept, failed = finding.places.get("kept", ()), _place(finding, What.FAILED)
    edits = repeat_inside(program, failed, kept[-1]) if kept and failed is not None else None
    if edits:
        yield Proposal("in_closure", edits, Safety.CHANGES_MEANING, intended_difference=True)


def _again(finding: Finding, program: Program) -> Iterator[Proposal]:
    use, old = finding.places.get("use", ()), finding.places.get("old", ())
    edits = recompute_before(program, use[0], old) if use and old else None
    if edits:
        yield Proposal("recompute", edits, Safety.CHANGES_MEANING, intended_difference=True)


def _detached_first(finding: Finding, program: Program) -> Iterator[Proposal]:
    """`d = D(g.detach())` for the first loss, `d = D(g)` again before the second uses it."""
    use, maker = finding.places.get("use", ()), _place(finding, What.CAUSE)
    if not use or maker is None:
        return
    for place in finding.places.get("inputs", ()):
        node = node_at(program, place)
        if node is None:
            continue
        again = recompute_before(program, use[0], [maker])
        edits = then(program, again, partial(detach_use, expr=ast.unparse(node)), maker)
        if edits:
            yield Proposal(
                "detach_recompute", edits, Safety.CHANGES_MEANING, intended_difference=True
            )


def _carried(finding: Finding, program: Program) -> Iterator[Proposal]:
    """The state goes on without its history; where it is cut differs with how it is kept."""
    seen = set()
    failed, name = _place(finding, What.FAILED), finding.facts["state"]
    if finding.facts["state_kind"] == "list":
        edits = None if failed is None else clear_after(program, failed, name)
        if edits:
            yield Proposal("clear_list", edits, Safety.CHANGES_MEANING, intended_difference=True)
        return
    for edits in _cuts(finding, program):
        if edits and edits not in seen:
            seen.add(edits)
            yield Proposal("detach_state", edits, Safety.CHANGES_MEANING, intended_difference=True)


def _cuts(finding: Finding, program: Program) -> Iterator[Edits]:
    maker, failed = _place(finding, What.CAUSE), _place(finding, What.FAILED)
    name, kept = finding.facts["state"], finding.facts["state_kind"]
    several = kept == "tuple"
    if failed is not None and name:
        again = bound_again(program, failed, name)
        if again is None:
            yield detach_after(program, failed, name, state=several)
        else:
            yield detach_expression(program, again, name, state=several)
    reader = finding.places.get("reader", ())
    if reader and not name:
        yield detach_use(program, reader[0], finding.facts["tensor"], state=several)
    fact = finding.tensor(Role.CULPRIT)
    if fact is None or maker is None:
        return
    carried = finding.facts["tensor"].rsplit(".", 1)[-1]
    for target in (n for n in fact.names if n.rsplit(".", 1)[-1] == carried):
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
