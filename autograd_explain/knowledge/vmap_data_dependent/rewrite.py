"""`torch.where` for a branch, the tensor itself for a number, zeros for what a mask leaves out."""

import ast
from itertools import pairwise

import libcst as cst

from autograd_explain.model import Place
from autograd_explain.program import Program, called_name
from autograd_explain.rewrite import Edits, Fix, Propose, Site, at_place, by_table, torch_at
from autograd_explain.rewrite.engine.cst_tools import is_number
from autograd_explain.rewrite.transforms.uncut import (
    apply_patches,
    code_of,
    node_at,
    replacement,
    without_cut,
)

from .branches import chosen_for_each
from .diagnose import Details, Why


def _tensor(site: Site[Details]) -> Edits | None:
    program, place = site.program, site.place
    node = node_at(program, place)
    if node is None or _branches(program, place, node):
        return None
    bounded = _bounded(program, place, node)
    return apply_patches(
        replacement(program, place, bounded) if bounded else without_cut(program, place)
    )


def _bounded(program: Program, place: Place, node: ast.expr) -> str:
    """`max(0, x)` -> `torch.clamp(x, min=0)`; of two tensors `torch.maximum(x, y)`."""
    torch = torch_at(program, place)
    if called_name(node) not in _BOUNDS or not isinstance(node, ast.Call) or len(node.args) != 2:
        return ""
    codes = [code_of(program, place, a) for a in node.args]
    numbers = [code for code in codes if is_number(cst.parse_expression(code))]
    if torch is None or not isinstance(node.func, ast.Name) or len(numbers) == 2:
        return ""
    bound, both = _BOUNDS[called_name(node)]
    if not numbers:
        return f"{torch}.{both}({', '.join(codes)})"
    x = next(code for code in codes if code != numbers[0])
    return f"{torch}.clamp({x}, {bound}={numbers[0]})"


_BOUNDS = {"max": ("min", "maximum"), "min": ("max", "minimum")}


def _branches(program: Program, place: Place, node: ast.expr) -> bool:
    """Whether the number decides a branch: then a tensor in its place would not help."""
    source = program.source_at(place)
    around = [] if source is None else [node, *source.around(node)]
    return any(getattr(outer, "test", None) is inner for inner, outer in pairwise(around))


def _masked(site: Site[Details]) -> Edits | None:
    """`x[mask].sum()` -> `(x * mask).sum()`."""
    program, place = site.program, site.place
    source, torch = program.source_at(place), torch_at(program, place)
    node = node_at(program, place)
    if source is None or torch is None or not isinstance(node, ast.Subscript):
        return None
    if getattr(source.parents.get(node), "attr", "") != "sum":
        return None
    x, mask = code_of(program, place, node.value), code_of(program, place, node.slice)
    return apply_patches(replacement(program, place, f"{torch}.where({mask}, {x}, 0)"))


propose: Propose[Details] = by_table(
    Fix("where", at_place(chosen_for_each), when=lambda d: d.why is Why.BRANCH),
    Fix("tensor", _tensor, when=lambda d: d.why in (Why.ITEM, Why.BRANCH)),
    Fix("masked", _masked, when=lambda d: d.why is Why.MASK),
)
