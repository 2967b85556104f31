"""The ordinary step."""

from autograd_explain.rewrite.engine.fixes import Fix, Propose, by_table
from autograd_explain.rewrite.transforms.call_edits import keyword_removed

propose: Propose[object] = by_table(
    Fix("not_fused", lambda s: keyword_removed(s.program, s.place, "fused")),
)
