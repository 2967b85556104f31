"""Make the result the leaf; where the leaf has a name of its own, keep the gradient as well."""

from autograd_explain.rewrite import dtype_in_constructor, requires_grad_last
from autograd_explain.rewrite.engine.fixes import Fix, Propose, at_place, by_table
from autograd_explain.rewrite.transforms.keep_gradient import (
    flag_moved,
    in_place_update,
    new_leaf,
    retained,
)

from .diagnose import Details


def _is_cast(details: Details) -> bool:
    return not (details.update or details.named)


propose: Propose[Details] = by_table(
    Fix("update", at_place(in_place_update), when=lambda d: d.update),
    Fix("constructor", at_place(dtype_in_constructor), when=_is_cast),
    Fix("requires_grad_last", at_place(requires_grad_last), when=_is_cast),
    Fix("requires_grad_last", lambda s: flag_moved(s.program, s.finding), when=_is_cast),
    Fix("retain_grad", lambda s: retained(s.program, s.finding), when=lambda d: not d.update),
    Fix("new_leaf", at_place(new_leaf), when=_is_cast, changes=True),
)
