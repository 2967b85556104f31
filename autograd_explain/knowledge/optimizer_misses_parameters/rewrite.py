"""Make the optimizer after the parameters it is to step."""

import ast
from collections.abc import Iterator

import libcst as cst

from autograd_explain.model import Finding, Place, What
from autograd_explain.program import Program
from autograd_explain.rewrite import Edits, Proposal, differing
from autograd_explain.rewrite.engine.draft import Draft
from autograd_explain.rewrite.engine.edits import each, then
from autograd_explain.rewrite.engine.tree import statement_at
from autograd_explain.rewrite.transforms.keep_gradient import in_place_update, updates_in_place
from autograd_explain.rewrite.transforms.made_again import made_again
from autograd_explain.rewrite.transforms.spot import Spot
from autograd_explain.rewrite.transforms.training_step import parameter_attribute

from .diagnose import Details
from .late_group import all_held, group_added
from .replaced_parameters import assigns


def _written_into(program: Program, place: Place) -> Edits | None:
    """`layer.w = nn.Parameter(v)` -> `layer.w.copy_(v)`, without recording."""
    tree, statement = statement_at(program, place)
    made = statement.value if isinstance(statement, cst.Assign) else None
    if not isinstance(made, cst.Call) or len(made.args) != 1:
        return None
    value = Draft(tree).replace(made, made.args[0].value).edits()
    return then(program, value, lambda p, at: updates_in_place(p, {at: False}), place)


def propose(finding: Finding[Details], program: Program) -> Iterator[Proposal]:
    replaced, plain = finding.details.replaced, finding.details.attributes
    yield from differing("as_parameter", each(program, ((parameter_attribute, p) for p in plain)))
    written = each(program, ((_written_into, p) for p in finding.details.renewed))
    yield from differing("written_into", written)
    rebound = finding.details.rebound
    if rebound is not None:
        yield from differing("written_back", in_place_update(program, rebound, reset=False))
    made = finding.place(What.CAUSE)
    if made is None or replaced is None:
        return
    if finding.details.unfrozen:
        yield from differing("add_group", group_added(program, made, finding.details.unfrozen))
        yield from differing("hold_all", all_held(program, made))
    if assigns(program.expression_at(replaced) or ast.Pass()):
        yield from differing("no_assign", Spot(program, replaced).without("assign"))
    edits, moved = (made_again(program, replaced, moved, made) for moved in (False, True))
    fix = "move_optimizer" if edits != moved else "repeat_optimizer"
    yield from differing(fix, moved)
    put_in = finding.details.put_in
    if moved is None:  # it is made where its names are not those of the replacement
        yield from differing("add_new", group_added(program, made, put_in, finding.details.names))
