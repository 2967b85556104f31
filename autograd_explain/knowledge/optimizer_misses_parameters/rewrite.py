"""Make the optimizer after the parameters it is to step."""

import ast
from collections.abc import Iterator

from autograd_explain.model import Finding, Place, What
from autograd_explain.program import Program
from autograd_explain.rewrite import Edits, Proposal, differing
from autograd_explain.rewrite.engine.edits import then
from autograd_explain.rewrite.transforms.call_edits import keyword_removed
from autograd_explain.rewrite.transforms.made_again import made_again
from autograd_explain.rewrite.transforms.training_step import parameter_attribute
from autograd_explain.rewrite.transforms.uncut import node_at

from .diagnose import Details
from .late_group import group_added
from .replaced_parameters import assigns


def _as_parameters(program: Program, places: tuple[Place, ...]) -> Edits | None:
    edits = parameter_attribute(program, places[0]) if places else None
    for place in places[1:]:
        edits = then(program, edits, parameter_attribute, place)
    return edits


def propose(finding: Finding[Details], program: Program) -> Iterator[Proposal]:
    replaced, plain = finding.details.replaced, finding.details.attributes
    yield from differing("as_parameter", _as_parameters(program, plain))
    made = finding.place(What.CAUSE)
    if made is None or replaced is None:
        return
    if finding.details.unfrozen:
        yield from differing("add_group", group_added(program, made, finding.details.unfrozen))
    if assigns(node_at(program, replaced) or ast.Pass()):
        yield from differing("no_assign", keyword_removed(program, replaced, "assign"))
    edits, moved = (made_again(program, replaced, moved, made) for moved in (False, True))
    fix = "move_optimizer" if edits != moved else "repeat_optimizer"
    yield from differing(fix, moved)
    if moved is None:  # it is made where its names are not those of the replacement
        yield from differing("add_new", group_added(program, made, finding.details.put_in))
