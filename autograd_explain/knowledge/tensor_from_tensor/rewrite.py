"""The copy spelled out; where the source requires grad, also the copy that keeps the graph."""

from autograd_explain.rewrite.engine.fixes import Fix, Propose, by_table

from .copies import tensor_copy
from .diagnose import Details

propose: Propose[Details] = by_table(
    Fix("detach_clone", lambda s: tensor_copy(s.program, s.place)),
    Fix(
        "clone",
        lambda s: tensor_copy(s.program, s.place, keep_graph=True),
        when=lambda d: d.graph,
        changes=True,
    ),
)
