"""`torch.where` for a branch, the tensor itself for a number, zeros for what a mask leaves out."""

import ast
from itertools import pairwise

from autograd_explain.model import Place
from autograd_explain.program import Program
from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table, torch_at
from autograd_explain.rewrite.transforms.uncut import (
    Patch,
    apply_patches,
    code_of,
    node_at,
    replacement,
    without_cut,
)

from .diagnose import Details, Why


def _where(site: Site[Details]) -> Edits | None:
    node = node_at(site.program, site.place)
    return None if node is None else apply_patches(_chosen(site.program, site.place, node))


def _tensor(site: Site[Details]) -> Edits | None:
    node = node_at(site.program, site.place)
    if node is None or _branches(site.program, site.place, node):
        return None
    return apply_patches(without_cut(site.program, site.place))


def _masked(site: Site[Details]) -> Edits | None:
    node = node_at(site.program, site.place)
    return None if node is None else apply_patches(_masked_sum(site.program, site.place, node))


def _chosen(program: Program, place: Place, node: ast.expr) -> list[Patch]:
    """`a if test else b`, or `if test: return a` followed by `return b`."""
    source = program.source_at(place)
    torch = torch_at(program, place)
    if source is None or torch is None:
        return []
    for outer in ast.walk(source.tree):
        span = source.span(outer)
        if isinstance(outer, ast.IfExp) and node in (outer, outer.test) and span is not None:
            values = (outer.test, outer.body, outer.orelse)
            code = ", ".join(code_of(program, place, v) for v in values)
            return [Patch(source, span, f"{torch}.where({code})")]
        for block in (getattr(outer, "body", None), getattr(outer, "orelse", None)):
            patches = _returned(program, place, node, block, torch)
            if patches:
                return patches
    return []


def _returned(
    program: Program, place: Place, node: ast.expr, block: object, torch: str
) -> list[Patch]:
    source = program.source_at(place)
    if source is None or not isinstance(block, list):
        return []
    for first, then in zip(block, [*block[1:], None], strict=False):
        if not isinstance(first, ast.If) or first.test is not node or len(first.body) != 1:
            continue
        last = first.orelse[0] if len(first.orelse) == 1 else then if not first.orelse else None
        inner = first.body[0]
        if not isinstance(inner, ast.Return) or not isinstance(last, ast.Return):
            return []
        start, end = source.span(first), source.span(last)
        if inner.value is None or last.value is None or start is None or end is None:
            return []
        code = ", ".join(code_of(program, place, v) for v in (node, inner.value, last.value))
        whole = type(start)(start.line, start.column, end.end_line, end.end_column)
        return [Patch(source, whole, f"return {torch}.where({code})")]
    return []


def _branches(program: Program, place: Place, node: ast.expr) -> bool:
    """Whether the number decides a branch: then a tensor in its place would not help."""
    source = program.source_at(place)
    around = [] if source is None else [node, *source.around(node)]
    return any(getattr(outer, "test", None) is inner for inner, outer in pairwise(around))


def _masked_sum(program: Program, place: Place, node: ast.expr) -> list[Patch]:
    """`x[mask].sum()` -> `(x * mask).sum()`."""
    source, torch = program.source_at(place), torch_at(program, place)
    if source is None or torch is None or not isinstance(node, ast.Subscript):
        return []
    if getattr(source.parents.get(node), "attr", "") != "sum":
        return []
    x, mask = code_of(program, place, node.value), code_of(program, place, node.slice)
    return replacement(program, place, f"{torch}.where({mask}, {x}, 0)")


propose: Propose[Details] = by_table(
    Fix("where", _where, when=lambda d: d.why is Why.BRANCH),
    Fix("tensor", _tensor, when=lambda d: d.why is Why.ITEM),
    Fix("masked", _masked, when=lambda d: d.why is Why.MASK),
)
