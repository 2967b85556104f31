"""The gradient transposed where its sizes are in reverse."""

from autograd_explain.rewrite.engine.fixes import Fix, Propose, by_table
from autograd_explain.rewrite.transforms.call_edits import (
    call_behind,
)

from .diagnose import Details

propose: Propose[Details] = by_table(
    Fix("transpose", lambda s: call_behind(s.program, s.place, "t"), when=lambda d: d.transposed),
)
