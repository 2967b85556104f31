"""The present name of a function of `functorch`."""

import ast

from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table

from .diagnose import Details


def _new_name(site: Site[Details]) -> Edits | None:
    """`functorch.vmap(f)` -> `torch.vmap(f)`, where torch is imported under that name."""
    call, new = site.call, site.details.replacement
    if call is not None and isinstance(call.func, ast.Call):
        call = call.func
    if call is None or not new.startswith("torch."):
        return None
    if not ast.unparse(call.func).startswith("functorch."):
        return None
    return site.of(call).replaced(f"{{torch}}.{new.removeprefix('torch.')}{{arguments}}")


propose: Propose[Details] = by_table(Fix("new_name", _new_name))
