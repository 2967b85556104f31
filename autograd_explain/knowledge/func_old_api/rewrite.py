"""The present name of a function of `functorch`."""

import ast
from dataclasses import replace

from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table, torch_at
from autograd_explain.rewrite.transforms.call_edits import expression_replaced
from autograd_explain.rewrite.transforms.uncut import node_at

from .diagnose import Details


def _new_name(site: Site[Details]) -> Edits | None:
    """`functorch.vmap(f)` -> `torch.vmap(f)`, where torch is imported under that name."""
    node, source = node_at(site.program, site.place), site.program.source_at(site.place)
    call = node.func if isinstance(node, ast.Call) and isinstance(node.func, ast.Call) else node
    new = site.details.replacement
    if not isinstance(call, ast.Call) or source is None or not new.startswith("torch."):
        return None
    if not ast.unparse(call.func).startswith("functorch.") or not torch_at(
        site.program, site.place
    ):
        return None
    return expression_replaced(
        site.program, replace(site.place, span=source.span(call)), new + "{arguments}"
    )


propose: Propose[Details] = by_table(Fix("new_name", _new_name))
