"""The ordinary step."""

from autograd_explain.rewrite import Fix, Propose, by_table

propose: Propose[object] = by_table(Fix("not_fused", lambda s: s.without("fused")))
