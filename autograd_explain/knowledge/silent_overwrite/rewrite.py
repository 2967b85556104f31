"""Let autograd see the write, give it memory of its own, or let it wait for backward."""

import ast
from collections.abc import Iterator
from functools import partial

from autograd_explain.inspect.dataflow.syntax import container_of
from autograd_explain.model import Finding, Place, What
from autograd_explain.program import Program, called_name
from autograd_explain.program_index import index_of
from autograd_explain.rewrite import Edits, Fix, Proposal, Propose, Site, by_table
from autograd_explain.rewrite.engine.edits import each
from autograd_explain.rewrite.transforms.clone import clone_alias, clone_operand
from autograd_explain.rewrite.transforms.copied_object import deep_copied
from autograd_explain.rewrite.transforms.inplace_modules import module_not_inplace
from autograd_explain.rewrite.transforms.move_statement import move_after
from autograd_explain.rewrite.transforms.out_of_place import new_tensor, out_of_place

from .alias import through_tensor
from .diagnose import Details, Way
from .graph_made import copies_handed_out, layers_not_inplace

_FROM_NUMPY = ("from_numpy", "as_tensor", "asarray")


def _own_memory(site: Site[Details]) -> Edits | None:
    """A copy where a tensor and an array came to share memory; None where several lines may be."""
    program, written = site.program, site.details.written
    if site.details.shared is not None:
        return clone_alias(program, site.details.shared)
    shared = list(_sharing(program))
    named = [place for name, place in shared if name == written]
    found = named or [place for _, place in shared]
    return clone_alias(program, found[0]) if len(found) == 1 else None


def _sharing(program: Program) -> Iterator[tuple[str, Place]]:
    """`torch.from_numpy(buffer)`, or `buffer = t.detach().numpy()`: the array's name, and where."""
    for source, node in index_of(program).nodes(ast.AST):
        if isinstance(node, ast.Call) and called_name(node) in _FROM_NUMPY and node.args:
            yield ast.unparse(container_of(node.args[0])), source.place(node.lineno, None, node)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            if called_name(node.value) == "numpy":
                place = source.place(node.lineno, None, node.value)
                yield from ((ast.unparse(t), place) for t in node.targets)


def _recorded(site: Site[Details]) -> Edits | None:
    """The write makes a new tensor that later lines use: its effect then counts in the gradient."""
    alias = site.finding.place(What.CREATED)
    if alias is None:
        return new_tensor(site.program, site.place)
    return through_tensor(site.program, alias, site.place, new_tensor)


def _later(site: Site[Details]) -> Edits | None:
    return move_after(site.program, site.details.write, site.details.failed)


def _value_saved(site: Site[Details]) -> Edits | None:
    saver, operand = site.finding.place(What.SAVED), site.details.operand
    return clone_operand(site.program, saver, operand) if operand else None


def _can_wait(details: Details) -> bool:
    """Not where the step would then move weights that were put there to look at something."""
    return not details.asked and details.way in (Way.DATA, Way.SET_DATA, Way.STEP, Way.NUMPY)


def _is_kept(details: Details) -> bool:
    """What an object keeps from round to round better stays the same tensor."""
    return "." in details.alias


def _can_be_recorded(details: Details) -> bool:
    return details.way in (Way.DATA, Way.FUNCTION, Way.CONTEXT) and not details.parameter


_of_write: Propose[Details] = by_table(
    Fix(
        "own_model",
        lambda s: deep_copied(s.program, s.details.handed),
        when=lambda d: d.asked,
        changes=True,
    ),
    # An array of a parameter is written for the parameter's sake.
    Fix("copy_array", _own_memory, when=lambda d: d.way is Way.NUMPY and not d.parameter),
    Fix("clone_alias", lambda s: clone_alias(s.program, s.finding.place(What.CREATED))),
    Fix("move_write", _later, when=lambda d: _can_wait(d) and _is_kept(d)),
    Fix("recorded_write", _recorded, when=_can_be_recorded, changes=True),
    Fix("move_write", _later, when=lambda d: _can_wait(d) and not _is_kept(d)),
    Fix("save_value", _value_saved),
    at=What.CHANGED,
)
_of_unrecorded: Propose[Details] = by_table(Fix("recorded_write", _recorded, changes=True))


_of_kept: Propose[Details] = by_table(
    Fix("keep_copy", lambda s: clone_operand(s.program, s.place, s.details.operand), changes=True),
    at=What.CAUSE,
)


_of_graph: Propose[Details] = by_table(
    Fix("layer_not_inplace", lambda s: layers_not_inplace(s.program, s.details.graph)),
    Fix("copy_in_graph", lambda s: copies_handed_out(s.program, s.details.graph)),
    changes=True,
)


def _copies(site: Site[Details]) -> Edits | None:
    """A copy of the tensor wherever it is kept, or given away to be written."""
    copied = site.details.copied
    return each(site.program, ((partial(clone_operand, operand=o), place) for place, o in copied))


def _new(program: Program, place: Place) -> Edits | None:
    return out_of_place(program, place) or module_not_inplace(program, place)


_of_second_name: Propose[Details] = by_table(
    Fix("copy_kept", _copies, when=lambda d: bool(d.copied)),
    # Each write makes a new tensor, which takes the written name.
    Fix("not_inplace", lambda s: s.at(*s.details.writes).each(_new)),
    at=What.CHANGED,
    changes=True,
)


_of_gradient: Propose[Details] = by_table(
    Fix("copy_gradient", _copies, changes=True, intended_difference=True),
    at=What.CHANGED,
)


def propose(finding: Finding[Details], program: Program) -> Iterator[Proposal]:
    tables = {
        Way.UNRECORDED: _of_unrecorded,
        Way.KEPT: _of_kept,
        Way.HANDED_OUT: _of_graph,
        Way.HELD: _of_second_name,
        Way.GIVEN: _of_second_name,
        Way.GRADIENT: _of_gradient,
    }
    table = tables.get(finding.details.way, _of_write)
    return table(finding, program)
