"""Hand over the values."""

from autograd_explain.rewrite import Fix, Propose, at_place, by_table
from autograd_explain.rewrite.transforms.call_edits import call_behind

propose: Propose[object] = by_table(Fix("detach", at_place(call_behind, "detach")))
