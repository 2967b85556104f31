"""The argument that is not differentiated, detached."""

from autograd_explain.rewrite import Fix, Propose, by_table

from .diagnose import Details

propose: Propose[Details] = by_table(
    Fix("detach_argument", lambda s: s.argument(s.details.argument).called("detach"), changes=True)
)
