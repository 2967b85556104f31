"""Floating point from the start, or a floating-point copy where the flag is set."""

import ast

from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.transforms.embedded_vectors import gradient_of_vectors

from .diagnose import Details


def _cast(site: Site[Details]) -> Edits | None:
    """`x.requires_grad = True` needs the name bound to the copy first."""
    flag = site.at(site.details.flag)
    if flag.argument("requires_grad").place is not None:
        return None
    statements = [n for n in flag.around if isinstance(n, ast.stmt)]
    if flag.call is None and any(_is_flag_of(s, flag.node) for s in statements):
        return flag.before("{x} = {x}.float()")
    return flag.called("float")


def _is_flag_of(statement: ast.stmt, node: ast.expr | None) -> bool:
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
        lambda s: s.given("dtype", "{torch}.float32"),
        when=lambda d: d.constructor and d.ids is None,
    ),
    Fix("cast", _cast, when=lambda d: d.ids is None),
)
