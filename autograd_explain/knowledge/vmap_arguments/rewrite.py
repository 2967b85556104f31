"""`None` in `in_dims` for the arguments that are no tensors."""

import ast

from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table

from .diagnose import Details


def _shared(site: Site[Details]) -> Edits | None:
    call = site.call
    made = None if call is None else call.func
    if call is None or not isinstance(made, ast.Call):
        return None
    if len(made.args) != 1 or made.keywords or call.keywords:
        return None
    plain = [isinstance(a, ast.Constant) for a in call.args]
    if not any(plain) or all(plain):
        return None
    dims = ", ".join("None" if p else "0" for p in plain)
    return site.of(made).given("in_dims", f"({dims})")


propose: Propose[Details] = by_table(Fix("share", _shared, when=lambda d: d.plain))
