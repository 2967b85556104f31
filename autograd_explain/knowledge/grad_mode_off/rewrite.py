"""The block that should end, the decorator that should go, the statement that should be outside."""

from autograd_explain.inspect.dataflow.grad_mode import OffBy
from autograd_explain.rewrite import block_instead_of_switch
from autograd_explain.rewrite.engine.fixes import Fix, Propose, at_place, by_table
from autograd_explain.rewrite.transforms.leave_no_grad import (
    decorated_generator,
    mode_of_caller,
    out_of_block,
    without_decorator,
)

from .diagnose import Details


def _is_switched(details: Details) -> bool:
    return details.by in (OffBy.SWITCH, OffBy.ENTERED)


propose: Propose[Details] = by_table(
    Fix("block", at_place(block_instead_of_switch), when=_is_switched),
    Fix("generator", at_place(decorated_generator), when=lambda d: d.by is OffBy.GENERATOR),
    Fix("decorator", at_place(without_decorator), when=lambda d: d.by is OffBy.DECORATOR),
    Fix("mode_of_caller", at_place(mode_of_caller), when=lambda d: d.by is OffBy.BLOCK),
    Fix(
        "outside",
        lambda s: out_of_block(s.program, s.place, s.details.unrecorded),
        when=lambda d: d.by is OffBy.BLOCK,
    ),
)
