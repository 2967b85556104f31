"""One update after the steps; one unscale_ for each."""

from autograd_explain.rewrite import Fix, Propose, at_place, by_table
from autograd_explain.rewrite.transforms.call_edits import line_behind
from autograd_explain.rewrite.transforms.training_step import remove_statement

from .diagnose import Details

propose: Propose[Details] = by_table(
    Fix(
        "update",
        lambda s: line_behind(s.program, s.place, f"{s.details.scaler}.update()\n"),
        when=lambda d: not d.updated,
    ),
    Fix("once", at_place(remove_statement), when=lambda d: d.again),
)
