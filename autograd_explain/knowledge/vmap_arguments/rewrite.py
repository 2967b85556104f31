"""`None` in `in_dims` for the arguments that are no tensors."""

import ast

from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.transforms.call_edits import keyword_set
from autograd_explain.rewrite.transforms.uncut import node_at

from .diagnose import Details


def _shared(site: Site[Details]) -> Edits | None:
    source, call = site.program.source_at(site.place), node_at(site.program, site.place)
    made = call.func if isinstance(call, ast.Call) else None
    if source is None or not isinstance(call, ast.Call) or not isinstance(made, ast.Call):
        return None
    if len(made.args) != 1 or made.keywords or call.keywords:
        return None
    plain = [isinstance(a, ast.Constant) for a in call.args]
    if not any(plain) or all(plain):
        return None
    dims = ", ".join("None" if p else "0" for p in plain)
    place = source.place(made.lineno, site.place.function, made)
    return keyword_set(site.program, place, "in_dims", f"({dims})")


propose: Propose[Details] = by_table(Fix("share", _shared, when=lambda d: d.plain))
