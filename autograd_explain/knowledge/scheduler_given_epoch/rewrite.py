"""Let the scheduler count."""

from autograd_explain.rewrite import Fix, Propose, at_place, by_table
from autograd_explain.rewrite.transforms.call_edits import arguments_emptied

propose: Propose[object] = by_table(Fix("count", at_place(arguments_emptied), changes=True))
