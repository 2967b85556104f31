"""Rewrites of the user's program that keep its comments and layout (LibCST).

Every transformer takes the program and a place of the report and returns `tuple[Edit, ...]`, or
None where the change cannot be made honestly here.  Nothing is run.  LibCST is imported with the
first call.  A place is a line, or a line with the span of the statement or expression meant;
`a; b`, one-line suites, statements over several lines, magics and `!cmd` lines are fine.
Expressions (`target`, `expr`, `operand` …) are given as the user writes them.

In-place operations made out of place
    out_of_place(program, place, target=None)
    functional_write(program, place, target=None, facts=None)   facts: IndexFacts(mask, …)
    module_not_inplace(program, place, module=None)
Copies
    clone_before_write(program, place, target=None)
    clone_operand(program, place, operand)
    clone_result(program, place)
    clone_alias(program, place, expr=None)
    clone_argument(program, place, callee, function=None)
    clone_unpacked(program, place, target)
    tensor_copy(program, place, expr=None, *, keep_graph=False)
    collect_and_stack(program, place)
Grad mode
    under_no_grad(program, place, last_place=None)
    last_update(program, place) -> last place of the updates by hand that follow each other
    block_instead_of_switch(program, place, last_place=None)
    remove_grad_switch(program, place)
Order
    move_after(program, place, target_place, last_place=None)
    move_before(program, place, target_place, last_place=None)
    toggled_run(program, place) -> (first, last) place of a run with its switches
    reorder_items(program, place, item, to=0)
    split_item(program, place, item)
    split_and_move(program, place, item, computed)
    zero_grad_first(program, zero_place, backward_place)
    zero_grad_after(program, step_place)
    remove_statement(program, place)
Computed again
    recompute_before(program, backward_place, assignment_places)
    compute_in_loop(program, place, use_place)
    repeat_after(program, place, target_place)
    recompute_attribute(program, place, use_place, attribute)
End of the graph
    detach_expression(program, place, expr=None, *, how="detach", state=False)
    detach_use(program, place, expr, *, how="detach", state=False)
    detach_before(program, place, expr, *, state=False)
    detach_after(program, place, expr, *, state=False)
    store_number(program, place, expr=None, how="item")
    keep_graph(program, place)
    backward_into(program, place, parameters)
Leaves and gradients
    dtype_in_constructor(program, place)
    requires_grad_last(program, place)
    as_new_leaf(program, place)
    retain_grad_after(program, place, expr=None)
    requires_grad_after(program, place, expr=None)
    reconnected(program, places, root=None)
    module_list(program, place, attribute=None)
    parameter_attribute(program, place, attribute=None)
NumPy
    numpy_detach(program, place, expr=None, *, cpu=True)
    numbers_of_list(program, place, expr, *, scalars=True)
Edits
    apply(program, edits) -> Edited | None        Edited.program; Edited.place(old) -> new place
    then(program, edits, step, *places)           edits, and step(edited_program, *places) on top
    merge(*groups)                                several rewrites as one
    torch_at(program, place) -> str | None        the name torch has there
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .attribute import recompute_attribute
    from .backward import detach_after, keep_graph
    from .casts import as_new_leaf, dtype_in_constructor, requires_grad_last
    from .clone import (
        clone_alias,
        clone_argument,
        clone_before_write,
        clone_operand,
        clone_result,
        clone_unpacked,
    )
    from .copies import tensor_copy
    from .detach import detach_before, detach_expression, detach_use, store_number
    from .edits import Edited, apply, merge, then
    from .functional import out_of_place
    from .grad_mode import (
        block_instead_of_switch,
        last_update,
        remove_grad_switch,
        under_no_grad,
    )
    from .imports import torch_at
    from .index_write import IndexFacts, functional_write
    from .loops import reorder_items, split_and_move, split_item
    from .modules import module_not_inplace
    from .move import move_after, move_before, toggled_run
    from .proposal import Proposal
    from .recompute import compute_in_loop, recompute_before, repeat_after
    from .reconnect import reconnected
    from .retain import requires_grad_after, retain_grad_after
    from .stacking import collect_and_stack
    from .to_numpy import numbers_of_list, numpy_detach
    from .training import (
        backward_into,
        module_list,
        parameter_attribute,
        remove_statement,
        zero_grad_after,
        zero_grad_first,
    )

_HOMES = {
    "attribute": "recompute_attribute",
    "backward": "detach_after keep_graph",
    "casts": "as_new_leaf dtype_in_constructor requires_grad_last",
    "clone": "clone_alias clone_argument clone_before_write clone_operand clone_result "
    "clone_unpacked",
    "copies": "tensor_copy",
    "detach": "detach_before detach_expression detach_use store_number",
    "edits": "Edited apply merge then",
    "functional": "out_of_place",
    "grad_mode": "block_instead_of_switch last_update remove_grad_switch under_no_grad",
    "imports": "torch_at",
    "index_write": "IndexFacts functional_write",
    "loops": "reorder_items split_and_move split_item",
    "modules": "module_not_inplace",
    "move": "move_after move_before toggled_run",
    "proposal": "Proposal",
    "recompute": "compute_in_loop recompute_before repeat_after",
    "reconnect": "reconnected",
    "retain": "requires_grad_after retain_grad_after",
    "stacking": "collect_and_stack",
    "to_numpy": "numbers_of_list numpy_detach",
    "training": "backward_into zero_grad_after module_list parameter_attribute remove_statement "
    "zero_grad_first",
}
_MODULE = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = [
    "Edited",
    "IndexFacts",
    "Proposal",
    "apply",
    "as_new_leaf",
    "backward_into",
    "block_instead_of_switch",
    "clone_alias",
    "clone_argument",
    "clone_before_write",
    "clone_operand",
    "clone_result",
    "clone_unpacked",
    "collect_and_stack",
    "compute_in_loop",
    "detach_after",
    "detach_before",
    "detach_expression",
    "detach_use",
    "dtype_in_constructor",
    "functional_write",
    "keep_graph",
    "last_update",
    "merge",
    "module_list",
    "module_not_inplace",
    "move_after",
    "move_before",
    "numbers_of_list",
    "numpy_detach",
    "out_of_place",
    "parameter_attribute",
    "recompute_attribute",
    "recompute_before",
    "reconnected",
    "remove_grad_switch",
    "remove_statement",
    "reorder_items",
    "repeat_after",
    "requires_grad_after",
    "requires_grad_last",
    "retain_grad_after",
    "split_and_move",
    "split_item",
    "store_number",
    "tensor_copy",
    "then",
    "toggled_run",
    "torch_at",
    "under_no_grad",
    "zero_grad_after",
    "zero_grad_first",
]


def __getattr__(name: str) -> object:
    """Import a transformer's module when the transformer is first asked for."""
    if name not in _MODULE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULE[name]}"), name)
