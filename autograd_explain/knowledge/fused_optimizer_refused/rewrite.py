"""The ordinary step."""

from autograd_explain.rewrite import Fix, Propose, at_place, by_table
from autograd_explain.rewrite.transforms.call_edits import keyword_removed

propose: Propose[object] = by_table(Fix("not_fused", at_place(keyword_removed, "fused")))
