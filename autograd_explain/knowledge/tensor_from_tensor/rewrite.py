"""The copy spelled out; where the source requires grad, also the copy that keeps the graph."""

from autograd_explain.rewrite import Fix, Propose, at_place, by_table

from .copies import tensor_copy
from .diagnose import Details

propose: Propose[Details] = by_table(
    Fix(
        "clone",
        at_place(tensor_copy, keep_graph=True),
        when=lambda d: d.loss or (d.graph and d.goes_on and not d.asked),
        changes=True,
    ),
    Fix("detach_clone", at_place(tensor_copy)),
    Fix(
        "clone",
        at_place(tensor_copy, keep_graph=True),
        when=lambda d: d.graph and not d.asked,
        changes=True,
    ),
)
