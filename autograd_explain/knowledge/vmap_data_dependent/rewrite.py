"""`torch.where` for a branch, the tensor itself for a number, zeros for what a mask leaves out."""

import ast
from itertools import pairwise

from autograd_explain.model import Place, Span
from autograd_explain.program import Program, Source
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
    """`a if test else b`, or `if test: return a` followed by `return b`."""
    program, place = site.program, site.place
    source, torch = program.source_at(place), torch_at(program, place)
    node = node_at(program, place)
    if source is None or node is None or torch is None:
        return None
    outer = node if isinstance(node, ast.IfExp) else source.parents[node]
    last: ast.AST | None = outer
    values: list[ast.expr | None] = []
    if isinstance(outer, ast.IfExp) and node in (outer, outer.test):
        values = [outer.test, outer.body, outer.orelse]
    elif isinstance(outer, ast.If) and outer.test is node and len(outer.body) == 1:
        last = _otherwise(source, outer)
        if isinstance(outer.body[0], ast.Return) and isinstance(last, ast.Return):
            values = [node, outer.body[0].value, last.value]
    start, end = source.span(outer), source.span(last)
    if not values or None in values or start is None or end is None:
        return None
    code = ", ".join(code_of(program, place, v) for v in values if v is not None)
    whole = Span(start.line, start.column, end.end_line, end.end_column)
    returned = "" if last is outer else "return "
    return apply_patches([Patch(source, whole, f"{returned}{torch}.where({code})")])


def _otherwise(source: Source, branch: ast.If) -> ast.stmt | None:
    """The one statement that runs where a test fails: in `else`, or behind the branch."""
    if branch.orelse:
        return branch.orelse[0] if len(branch.orelse) == 1 else None
    around = source.parents[branch]
    for block in (getattr(around, "body", []), getattr(around, "orelse", [])):
        if branch in block:
            return next(iter(block[block.index(branch) + 1 :]), None)
    return None


def _tensor(site: Site[Details]) -> Edits | None:
    node = node_at(site.program, site.place)
    if node is None or _branches(site.program, site.place, node):
        return None
    return apply_patches(without_cut(site.program, site.place))


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
    Fix("where", _where, when=lambda d: d.why is Why.BRANCH),
    Fix("tensor", _tensor, when=lambda d: d.why is Why.ITEM),
    Fix("masked", _masked, when=lambda d: d.why is Why.MASK),
)
