"""no_grad instead of inference mode, or a clone where the tensor comes back to autograd."""

import ast

from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.transforms.call_edits import (
    expression_replaced,
    line_before,
)
from autograd_explain.rewrite.transforms.clone import clone_before_write
from autograd_explain.rewrite.transforms.uncut import apply_patches, called, node_at

from .diagnose import Details


def _no_grad(site: Site[Details]) -> Edits | None:
    """`torch.inference_mode()` -> `torch.no_grad()`; not where a flag decides."""
    node = node_at(site.program, site.place)
    decides = isinstance(node, ast.Call) and bool(node.args or node.keywords)
    return None if decides else expression_replaced(site.program, site.place, "{owner}.no_grad()")


def _clone(site: Site[Details]) -> Edits | None:
    use = site.details.use
    if use is None:
        return None
    if site.details.written:
        return clone_before_write(site.program, use, site.details.tensor)
    names = site.details.together
    if len(names) < 2:
        at = (use, *site.details.others)
        return apply_patches(p for place in at for p in called(site.program, place, "clone"))
    copies = ", ".join(f"{name}.clone()" for name in names)
    return line_before(site.program, use, f"{', '.join(names)} = {copies}")


propose: Propose[Details] = by_table(
    Fix("no_grad", _no_grad, when=lambda d: d.mode),
    Fix("clone", _clone, when=lambda d: not d.flagged),
)
