"""An update belongs under no_grad; a value computed from the leaf gets a tensor of its own."""

import ast
from collections.abc import Iterator

from autograd_explain.inspect.rebinding import hands_back_argument, rebinding_is_enough
from autograd_explain.inspect.statements import write_at
from autograd_explain.model import Finding, Place, Role, Safety, What
from autograd_explain.program import Program
from autograd_explain.rewrite import functional_write, last_update, out_of_place, under_no_grad
from autograd_explain.rewrite.proposal import Proposal


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    event = finding.event(What.CHANGED)
    if event is None or event.place is None:
        return
    place = event.place
    update = finding.variant in ("update", "init") or _stays_the_leaf(finding, program, place)
    makers = (_no_grad, _out_of_place) if update else (_out_of_place, _no_grad)
    for make in makers:
        yield from make(program, place, update)


def _no_grad(program: Program, place: Place, update: bool) -> Iterator[Proposal]:
    edits = under_no_grad(program, place, last_update(program, place))
    if edits:
        safety = Safety.SAME_GRADIENTS if update else Safety.CHANGES_MEANING
        yield Proposal("no_grad", edits, safety, intended_difference=not update)


def _out_of_place(program: Program, place: Place, update: bool) -> Iterator[Proposal]:
    if update:
        return  # a rebound parameter is no longer the one that the optimizer or the model holds
    edits = functional_write(program, place) or out_of_place(program, place)
    if edits:
        yield Proposal("out_of_place", edits, Safety.CHANGES_MEANING, intended_difference=True)


def _stays_the_leaf(finding: Finding, program: Program, place: Place) -> bool:
    """Whether the written name has to go on meaning the leaf.

    Others look at the tensor that the name was given, or the program reads the name's `.grad`.
    """
    write = write_at(program, place)
    if write is None or not isinstance(write.target, ast.Name):
        return _gradient_is_read(_last_parts(finding), program)
    if not rebinding_is_enough(program, place, write.target):
        return True
    if hands_back_argument(program, place, write.target.id):
        return False  # the caller's name goes on meaning the leaf
    return _gradient_is_read({write.target.id}, program)


def _last_parts(finding: Finding) -> set[str]:
    """Places may reach the tensor by other paths: `params.vec`, `self.owner.vec`."""
    fact = finding.tensor(Role.CULPRIT)
    return {name.rsplit(".", 1)[-1] for name in fact.names} if fact is not None else set()


def _gradient_is_read(names: set[str], program: Program) -> bool:
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == "grad"
        and ast.unparse(node.value).rsplit(".", 1)[-1] in names
        for cell in program.cells
        for node in ast.walk(cell.tree)
    )
