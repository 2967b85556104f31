"""Every operator there is."""

from __future__ import annotations

from . import backwards, copies, derivatives, ends, leaves, modes, order, writes
from .site import Operator

OPERATORS: tuple[Operator, ...] = (
    copies.clone_operand,
    copies.clone_result,
    copies.clone_elements,
    copies.clone_first,
    copies.clone_before,
    writes.not_in_place,
    writes.written_into,
    modes.without_graph,
    modes.function_without_graph,
    modes.block_reaches_further,
    modes.with_graph,
    modes.no_grad_instead_of_inference,
    order.move,
    order.move_run,
    order.delete,
    order.repeat_first,
    order.computed_again,
    ends.detach_operand,
    ends.detach_result,
    ends.detach_other,
    ends.detach_carried,
    ends.detach_kept,
    ends.soft,
    ends.keep_in_graph,
    ends.tensors_joined,
    ends.drop_call,
    ends.float_instead_of_item,
    leaves.flag_last,
    leaves.new_leaf,
    leaves.no_flag,
    leaves.registered,
    leaves.kept_gradient,
    leaves.whole_argument,
    backwards.reduced,
    backwards.differentiable,
    backwards.away_from_zero,
    derivatives.put_together,
    derivatives.part_of_derivative,
    derivatives.derivative_itself,
)
