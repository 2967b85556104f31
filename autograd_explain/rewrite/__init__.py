"""Rewrites of the user's program that keep its comments and layout (LibCST).

Every transformer takes the program and a place of the report and returns `tuple[Edit, ...]`, or
None where the change cannot be made honestly here.  Nothing is run.  LibCST is imported with the
first call.  A place is a line, or a line with the span of the statement or expression meant;
`a; b`, one-line suites, statements over several lines, magics and `!cmd` lines are fine.
Expressions (`target`, `expr`, `operand` …) are given as the user writes them.

In-place operations made out of place
    out_of_place(program, place, target=None)
    functional_write(program, place, target=None)
    module_not_inplace(program, place, module=None)
Copies
    clone_before_write(program, place, target=None)
    clone_operand(program, place, operand)
    clone_result(program, place)
    clone_alias(program, place)
    clone_argument(program, place, callee)
    clone_unpacked(program, place, target)
Grad mode
    under_no_grad(program, place, last_place=None)
    last_update(program, place) -> last place of the updates by hand that follow each other
    block_instead_of_switch(program, place)
    remove_grad_switch(program, place)
Order
    move_after(program, place, target_place, last_place=None)
    move_before(program, place, target_place, last_place=None, *, checked=True)
    toggled_run(program, place) -> (first, last) place of a run with its switches
    zero_grad_after(program, step_place)
    remove_statement(program, place)
Computed again
    recompute_before(program, backward_place, assignment_places)
End of the graph
    detach_expression(program, place, expr=None, *, state=False)
    detach_use(program, place, expr, *, state=False, or_none=False)
    detach_after(program, place, *exprs, state=False)
    keep_graph(program, place)
Leaves and gradients
    dtype_in_constructor(program, place)
    requires_grad_last(program, place)
    module_list(program, place, attribute=None)
    parameter_attribute(program, place, attribute=None)
A table of rewrites
    by_table(*rows, at=What.CAUSE) -> propose     rows: Fix(key, edit, when=…, changes=False): where
                                                  when(details) holds, edit(site: Site) is proposed
    at_place(transform, *args, **kwargs) -> edit  what a transformer makes of the site's place
Edits
    differing(fix, edits) -> proposal             of what computes something else on purpose
    apply(program, edits) -> Edited | None        Edited.program; Edited.place(old) -> new place
    then(program, edits, step, *places)           edits, and step(edited_program, *places) on top
    merge(*groups)                                several rewrites as one
    torch_at(program, place) -> str | None        the name torch has there
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .engine.edits import Edited, apply, merge, then
    from .engine.fixes import Fix, Propose, Site, at_place, by_table
    from .engine.imports import torch_at
    from .engine.proposal import Edits, Proposal, differing
    from .transforms.backward import detach_after, keep_graph
    from .transforms.casts import dtype_in_constructor, requires_grad_last
    from .transforms.clone import (
        clone_alias,
        clone_argument,
        clone_before_write,
        clone_operand,
        clone_result,
        clone_unpacked,
    )
    from .transforms.detach import detach_expression, detach_use
    from .transforms.grad_mode import (
        block_instead_of_switch,
        last_update,
        remove_grad_switch,
        under_no_grad,
    )
    from .transforms.index_write import functional_write
    from .transforms.inplace_modules import module_not_inplace
    from .transforms.move_statement import move_after, move_before, toggled_run
    from .transforms.out_of_place import out_of_place
    from .transforms.recompute import recompute_before
    from .transforms.training_step import (
        module_list,
        parameter_attribute,
        remove_statement,
        zero_grad_after,
    )

_HOMES = {
    "engine.edits": "Edited apply merge then",
    "engine.fixes": "Fix Propose Site at_place by_table",
    "engine.imports": "torch_at",
    "engine.proposal": "Edits Proposal differing",
    "transforms.backward": "detach_after keep_graph",
    "transforms.casts": "dtype_in_constructor requires_grad_last",
    "transforms.clone": "clone_alias clone_argument clone_before_write clone_operand "
    "clone_result clone_unpacked",
    "transforms.detach": "detach_expression detach_use",
    "transforms.grad_mode": "block_instead_of_switch last_update remove_grad_switch under_no_grad",
    "transforms.index_write": "functional_write",
    "transforms.inplace_modules": "module_not_inplace",
    "transforms.move_statement": "move_after move_before toggled_run",
    "transforms.out_of_place": "out_of_place",
    "transforms.recompute": "recompute_before",
    "transforms.training_step": "module_list parameter_attribute remove_statement zero_grad_after",
}
_MODULE = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = ["Edited", "Edits", "Fix", "Proposal", "Propose", "Site", "apply", "at_place"]
__all__ += ["block_instead_of_switch", "by_table", "clone_alias", "clone_argument"]
__all__ += ["clone_before_write", "clone_operand", "clone_result", "clone_unpacked", "detach_after"]
__all__ += ["detach_expression", "detach_use", "differing", "dtype_in_constructor"]
__all__ += ["functional_write", "keep_graph", "last_update", "merge", "module_list"]
__all__ += ["module_not_inplace", "move_after", "move_before", "out_of_place"]
__all__ += ["parameter_attribute", "recompute_before", "remove_grad_switch", "remove_statement"]
__all__ += ["requires_grad_last", "then", "toggled_run", "torch_at"]
__all__ += ["under_no_grad", "zero_grad_after"]


def __getattr__(name: str) -> object:
    """Import a transformer's module when the transformer is first asked for."""
    if name not in _MODULE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULE[name]}"), name)
