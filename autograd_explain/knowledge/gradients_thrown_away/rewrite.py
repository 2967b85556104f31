"""Clear before backward, or with the step where not every round has one; change before a step."""

from autograd_explain.rewrite import Fix, Propose, by_table
from autograd_explain.rewrite.transforms.move_statement import move_before
from autograd_explain.rewrite.transforms.training_step import cleared_with_the_step

from .diagnose import Details

propose: Propose[Details] = by_table(
    Fix(
        "change_first",
        lambda s: move_before(s.program, s.details.change, s.details.step, checked=False),
        when=lambda d: d.change is not None,
    ),
    Fix(
        "clear_with_step",
        lambda s: cleared_with_the_step(s.program, s.place, s.details.step),
        when=lambda d: d.change is None,
    ),
    Fix(
        "clear_first",
        lambda s: move_before(s.program, s.place, s.details.backward),
        when=lambda d: d.change is None and not d.rounds,
    ),
    changes=True,
)
