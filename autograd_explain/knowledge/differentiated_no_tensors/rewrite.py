"""The parameters themselves."""

import ast

from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table

from .diagnose import Details, Tensors


def _inner(site: Site[Details]) -> Edits | None:
    node = site.node
    if not isinstance(node, (ast.List, ast.Tuple)):
        return None
    return site.replaced("list({inner})", inner=site.code(node.elts[0]))


propose: Propose[Details] = by_table(
    Fix(
        "parameters",
        lambda s: s.replaced("{owner}.parameters{arguments}"),
        when=lambda d: d.tensors is Tensors.PARAMETERS,
    ),
    Fix("parameters", _inner, when=lambda d: d.tensors is Tensors.INNER),
)
