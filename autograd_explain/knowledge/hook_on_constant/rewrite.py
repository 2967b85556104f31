"""What cut the graph taken away, or the gradient asked for where the tensor is made."""

import ast

from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.transforms.call_edits import keyword_set
from autograd_explain.rewrite.transforms.uncut import apply_patches, node_at, without_cut

from .diagnose import Details, Why

_CONSTRUCTORS = frozenset(
    "tensor zeros ones rand randn full empty eye linspace arange normal".split()
)


def _flagged(site: Site[Details]) -> Edits | None:
    node = node_at(site.program, site.place)
    function = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
    if function.rpartition(".")[2] not in _CONSTRUCTORS:
        return None
    return keyword_set(site.program, site.place, "requires_grad", "True")


propose: Propose[Details] = by_table(
    Fix(
        "uncut",
        lambda s: apply_patches(without_cut(s.program, s.place)),
        when=lambda d: d.why is Why.CUT,
    ),
    Fix("requires_grad", _flagged, when=lambda d: d.why is Why.MADE),
)
