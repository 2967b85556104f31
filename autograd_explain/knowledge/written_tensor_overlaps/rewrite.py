"""Memory of its own before it is written."""

from autograd_explain.rewrite import Fix, Propose, at_place, by_table
from autograd_explain.rewrite.transforms.call_edits import call_behind

from .diagnose import Details

propose: Propose[Details] = by_table(
    Fix("clone", at_place(call_behind, "clone"), when=lambda d: d.expanded)
)
