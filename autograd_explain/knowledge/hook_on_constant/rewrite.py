"""What cut the graph taken away, or the gradient asked for where the tensor is made."""

from autograd_explain.rewrite import Fix, Propose, at_place, by_table
from autograd_explain.rewrite.transforms.call_edits import asked_for_gradient
from autograd_explain.rewrite.transforms.uncut import uncut_at

from .diagnose import Details, Why

propose: Propose[Details] = by_table(
    Fix("uncut", at_place(uncut_at), when=lambda d: d.why is Why.CUT),
    Fix("requires_grad", at_place(asked_for_gradient), when=lambda d: d.why is Why.MADE),
)
