"""`detach()` in place of `detach_()`, under the same name where the call stood alone."""

from autograd_explain.rewrite import Fix, Propose, at_place, by_table
from autograd_explain.rewrite.transforms.call_edits import detached_instead

propose: Propose[object] = by_table(Fix("out_of_place", at_place(detached_instead)))
