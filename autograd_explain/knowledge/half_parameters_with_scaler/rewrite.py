"""Parameters in float32; autocast computes in half precision."""

from autograd_explain.rewrite import Fix, Propose, by_table

from .diagnose import Details

propose: Propose[Details] = by_table(
    Fix("float32", lambda s: s.left_out("{owner}"), when=lambda d: d.autocast, changes=True)
)
