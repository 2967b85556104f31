"""Floating point from the start, or a floating-point copy where the flag is set."""

import ast

from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.transforms.embedded_vectors import gradient_of_vectors

from .diagnose import Details


def _cast(site: Site[Details]) -> Edits | None:
    """`x.requires_grad = True`, or `x.requires_grad_()` alone, needs the name bound to the copy
    first."""
    flag = site.at(site.details.flag)
    if flag.argument("requires_grad").place is not None:
        return None
    match flag.statement:
        case ast.Assign(targets=[ast.Attribute(value=x)]) | ast.Expr(
            ast.Call(func=ast.Attribute(value=x))
        ) if x is flag.node and flag.call is None:
            return flag.before("{x} = {x}.float()")
    return flag.called("float")


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
