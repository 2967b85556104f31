"""Ask for the rate that is in use."""

from autograd_explain.rewrite.engine.fixes import Fix, Propose, by_table
from autograd_explain.rewrite.transforms.call_edits import renamed

propose: Propose[object] = by_table(
    Fix("last", lambda s: renamed(s.program, s.place, "{owner}.get_last_lr")),
)
