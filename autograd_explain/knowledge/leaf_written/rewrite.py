"""An update belongs under no_grad; a value computed from the leaf gets a tensor of its own."""

import ast
from collections.abc import Iterator

from autograd_explain.model import Finding, Place, Role, Safety, What
from autograd_explain.program import Program
from autograd_explain.rewrite import functional_write, out_of_place, under_no_grad
from autograd_explain.rewrite.proposal import Proposal


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    event = finding.event(What.CHANGED)
    if event is None or event.place is None:
        return
    place = event.place
    update = finding.variant in ("update", "init") or _gradient_is_read(finding, program)
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


def _gradient_is_read(finding: Finding, program: Program) -> bool:
    """Whether the program reads `.grad` of this tensor: then it must stay the leaf.

    Other places may reach it by another path (`params.vec`, `self.owner.vec`), so the last part
    of the names counts.
    """
    fact = finding.tensor(Role.CULPRIT)
    names = {name.rsplit(".", 1)[-1] for name in fact.names} if fact is not None else set()
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == "grad"
        and ast.unparse(node.value).rsplit(".", 1)[-1] in names
        for cell in program.cells
        for node in ast.walk(cell.tree)
    )
