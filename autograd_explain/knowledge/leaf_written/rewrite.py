"""An update belongs under no_grad; a value computed from the leaf gets a tensor of its own."""

import ast
from collections.abc import Iterator

from autograd_explain.inspect.statements import write_at
from autograd_explain.model import Finding, Place, Safety, What
from autograd_explain.program import Program
from autograd_explain.rewrite import functional_write, out_of_place, under_no_grad
from autograd_explain.rewrite.proposal import Proposal


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    event = finding.event(What.CHANGED)
    if event is None or event.place is None:
        return
    place = event.place
    update = finding.variant in ("update", "init") or _gradient_is_read(program, place)
    makers = (_no_grad, _out_of_place) if update else (_out_of_place, _no_grad)
    for make in makers:
        yield from make(program, place, update)


def _no_grad(program: Program, place: Place, update: bool) -> Iterator[Proposal]:
    edits = under_no_grad(program, place)
    if edits:
        safety = Safety.SAME_GRADIENTS if update else Safety.CHANGES_MEANING
        yield Proposal("no_grad", edits, safety, intended_difference=not update)


def _out_of_place(program: Program, place: Place, update: bool) -> Iterator[Proposal]:
    if update:
        return  # a rebound parameter is no longer the one that the optimizer or the model holds
    edits = functional_write(program, place) or out_of_place(program, place)
    if edits:
        yield Proposal("out_of_place", edits, Safety.CHANGES_MEANING, intended_difference=True)


def _gradient_is_read(program: Program, place: Place) -> bool:
    """Whether the program reads `.grad` of the written name: then it must stay the leaf."""
    write, source = write_at(program, place), program.source_at(place)
    if write is None or source is None:
        return False
    target = write.target_text
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == "grad"
        and ast.unparse(node.value) == target
        for node in ast.walk(source.tree)
    )
