"""Let the scheduler count."""

from autograd_explain.rewrite import Fix, Propose, by_table

propose: Propose[object] = by_table(
    Fix("count", lambda s: s.replaced("{function}()"), changes=True)
)
