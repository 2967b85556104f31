"""Floating point from the start, or a floating-point copy where the flag is set."""

import ast

from autograd_explain.rewrite import Edits, Fix, Propose, Site, at_place, by_table
from autograd_explain.rewrite.transforms.call_edits import call_behind, keyword_set, line_before
from autograd_explain.rewrite.transforms.embedded_vectors import gradient_of_vectors
from autograd_explain.rewrite.transforms.uncut import code_of, node_at

from .diagnose import Details


def _cast(site: Site[Details]) -> Edits | None:
    """`x.requires_grad = True` needs the name bound to the copy first."""
    program, place = site.program, site.details.flag
    node, source = node_at(program, place), program.source_at(place)
    if isinstance(node, ast.Call):
        flagged = any(k.arg == "requires_grad" for k in node.keywords)
        return None if flagged else call_behind(program, place, "float")
    if source is None or node is None or place is None:
        return None
    if any(_is_flag_of(statement, node) for statement in ast.walk(source.tree)):
        name = code_of(program, place, node)
        return line_before(program, place, f"{name} = {name}.float()\n")
    return call_behind(program, place, "float")


def _is_flag_of(statement: ast.AST, node: ast.expr) -> bool:
    """`x.requires_grad_()` alone, or `x.requires_grad = True`."""
    if isinstance(statement, ast.Assign):
        return getattr(statement.targets[0], "value", None) is node
    call = statement.value if isinstance(statement, ast.Expr) else None
    function = call.func if isinstance(call, ast.Call) else None
    return isinstance(function, ast.Attribute) and function.value is node


propose: Propose[Details] = by_table(
    Fix(
        "vectors",
        lambda s: gradient_of_vectors(s.program, s.details.ids, flag=s.details.failed),
        changes=True,
    ),
    Fix(
        "dtype",
        at_place(keyword_set, "dtype", "{torch}.float32"),
        when=lambda d: d.constructor and d.ids is None,
    ),
    Fix("cast", _cast, when=lambda d: d.ids is None),
)
