"""Dense gradients for a dense optimizer, or the optimizer for dense gradients."""

from autograd_explain.rewrite.engine.fixes import Fix, Propose, by_table
from autograd_explain.rewrite.transforms.call_edits import (
    keyword_removed,
    renamed,
)

from .diagnose import Details

propose: Propose[Details] = by_table(
    Fix(
        "dense",
        lambda s: keyword_removed(s.program, s.place, "sparse"),
        when=lambda d: not d.dense,
    ),
    Fix(
        "adam",
        lambda s: renamed(s.program, s.place, "{owner}.Adam"),
        when=lambda d: d.dense,
        changes=True,
    ),
)
