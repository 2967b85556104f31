"""Hand over the values."""

from autograd_explain.rewrite import Fix, Propose, by_table

propose: Propose[object] = by_table(Fix("detach", lambda s: s.called("detach")))
