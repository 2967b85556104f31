"""The brackets that call it."""

from autograd_explain.rewrite import Fix, Propose, by_table

propose: Propose[None] = by_table(Fix("call", lambda s: s.replaced("{x}()"), changes=True))
