"""A container that registers what is in it."""

from autograd_explain.rewrite import module_list
from autograd_explain.rewrite.engine.fixes import Fix, Propose, by_table

propose: Propose[object] = by_table(
    Fix("module_list", lambda s: module_list(s.program, s.place), changes=True),
)
