"""Parameters in float32; autocast computes in half precision."""

import ast

from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.transforms.call_edits import expression_replaced
from autograd_explain.rewrite.transforms.training_step import remove_statement
from autograd_explain.rewrite.transforms.uncut import node_at

from .diagnose import Details


def _float32(site: Site[Details]) -> Edits | None:
    statement = site.program.statement_at(site.place)
    alone = getattr(statement, "value", None) is node_at(site.program, site.place)
    if alone and isinstance(statement, ast.Expr):
        return remove_statement(site.program, site.place)
    return expression_replaced(site.program, site.place, "{owner}")


propose: Propose[Details] = by_table(
    Fix("float32", _float32, when=lambda d: d.autocast, changes=True)
)
