"""A detached view under the same name."""

import ast

from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.transforms.call_edits import renamed_around, statement_replaced
from autograd_explain.rewrite.transforms.uncut import code_of, node_at


def _out_of_place(site: Site[object]) -> Edits | None:
    node = node_at(site.program, site.place)
    statement = site.program.statement_at(site.place)
    call = statement.value if isinstance(statement, ast.Expr) else None
    function = call.func if isinstance(call, ast.Call) else None
    alone = isinstance(function, ast.Attribute) and function.value is node
    if node is None or not alone:
        return renamed_around(site.program, site.place, "detach")
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return None
    name = code_of(site.program, site.place, node)
    return statement_replaced(site.program, site.place, f"{name} = {name}.detach()\n")


propose: Propose[object] = by_table(Fix("out_of_place", _out_of_place))
