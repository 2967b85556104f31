"""The gradient transposed where its sizes are in reverse."""

from autograd_explain.rewrite.engine.fixes import Fix, Propose, at_place, by_table
from autograd_explain.rewrite.transforms.call_edits import call_behind

from .diagnose import Details

propose: Propose[Details] = by_table(
    Fix("transpose", at_place(call_behind, "t"), when=lambda d: d.transposed)
)
