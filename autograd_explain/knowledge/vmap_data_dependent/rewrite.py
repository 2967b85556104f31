"""`torch.where` for a branch, the tensor itself for a number, zeros for what a mask leaves out."""

import ast
from itertools import pairwise

import libcst as cst

from autograd_explain.program import called_name
from autograd_explain.rewrite import Edits, Fix, Propose, Site, at_place, by_table
from autograd_explain.rewrite.engine.cst_tools import is_number
from autograd_explain.rewrite.transforms.uncut import uncut_at

from .branches import chosen_for_each
from .diagnose import Details, Why


def _tensor(site: Site[Details]) -> Edits | None:
    if any(getattr(o, "test", None) is n for n, o in pairwise((site.node, *site.around))):
        return None  # it decides a branch: a tensor in its place would not help
    bounded = _bounded(site)
    return site.replaced(bounded) if bounded else uncut_at(site.program, site.place)


def _bounded(site: Site[Details]) -> str:
    """`max(0, x)` -> `torch.clamp(x, min=0)`; of two tensors `torch.maximum(x, y)`."""
    call = site.call
    if call is None or called_name(call) not in _BOUNDS or len(call.args) != 2:
        return ""
    codes = [site.code(a) for a in call.args]
    numbers = [code for code in codes if is_number(cst.parse_expression(code))]
    if not isinstance(call.func, ast.Name) or len(numbers) == 2:
        return ""
    bound, both = _BOUNDS[call.func.id]
    if not numbers:
        return f"{{torch}}.{both}({', '.join(codes)})"
    x = next(code for code in codes if code != numbers[0])
    return f"{{torch}}.clamp({x}, {bound}={numbers[0]})"


_BOUNDS = {"max": ("min", "maximum"), "min": ("max", "minimum")}


def _masked(site: Site[Details]) -> Edits | None:
    """`x[mask].sum()` -> `(x * mask).sum()`."""
    node = site.node
    if not isinstance(node, ast.Subscript) or getattr(site.outer, "attr", "") != "sum":
        return None
    x, mask = site.code(node.value), site.code(node.slice)
    return site.replaced("{torch}.where({mask}, {x}, 0)", mask=mask, x=x)


propose: Propose[Details] = by_table(
    Fix("where", at_place(chosen_for_each), when=lambda d: d.why is Why.BRANCH),
    Fix("tensor", _tensor, when=lambda d: d.why in (Why.ITEM, Why.BRANCH)),
    Fix("masked", _masked, when=lambda d: d.why is Why.MASK),
)
