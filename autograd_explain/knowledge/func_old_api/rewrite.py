"""The present name of a function of `functorch`."""

import ast

from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table, torch_at
from autograd_explain.rewrite.transforms.uncut import Patch, apply_patches, node_at

from .diagnose import Details


def _new_name(site: Site[Details]) -> Edits | None:
    """`functorch.vmap(f)` -> `torch.vmap(f)`, where torch is imported under that name."""
    node, source = node_at(site.program, site.place), site.program.source_at(site.place)
    call = node.func if isinstance(node, ast.Call) and isinstance(node.func, ast.Call) else node
    new = site.details.replacement
    if not isinstance(call, ast.Call) or source is None or not new.startswith("torch."):
        return None
    span = source.span(call.func)
    if span is None or not ast.unparse(call.func).startswith("functorch."):
        return None
    known = torch_at(site.program, site.place)
    return apply_patches([Patch(source, span, new)]) if known else None


propose: Propose[Details] = by_table(Fix("new_name", _new_name))
