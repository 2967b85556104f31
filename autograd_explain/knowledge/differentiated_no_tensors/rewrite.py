"""The parameters themselves."""

import ast

from autograd_explain.rewrite import Edits, Fix, Propose, Site, at_place, by_table
from autograd_explain.rewrite.transforms.call_edits import expression_replaced
from autograd_explain.rewrite.transforms.uncut import code_of, node_at

from .diagnose import Details, Tensors


def _inner(site: Site[Details]) -> Edits | None:
    node = node_at(site.program, site.place)
    if not isinstance(node, (ast.List, ast.Tuple)):
        return None
    inner = code_of(site.program, site.place, node.elts[0])
    return expression_replaced(site.program, site.place, f"list({inner})")


propose: Propose[Details] = by_table(
    Fix(
        "parameters",
        at_place(expression_replaced, "{owner}.parameters{arguments}"),
        when=lambda d: d.tensors is Tensors.PARAMETERS,
    ),
    Fix("parameters", _inner, when=lambda d: d.tensors is Tensors.INNER),
)
