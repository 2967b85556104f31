"""The present name."""

import ast

from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.engine.imports import imports_at
from autograd_explain.rewrite.transforms.call_edits import expression_replaced
from autograd_explain.rewrite.transforms.uncut import code_of, node_at

from .diagnose import Details


def _new_name(site: Site[Details]) -> Edits | None:
    node = node_at(site.program, site.place)
    if not isinstance(node, ast.Call):
        return None
    given = [code_of(site.program, site.place, a) for a in (*node.args, *node.keywords)]
    given = [site.details.first, *given] if site.details.first else given
    name = imports_at(site.program, site.place).local(site.details.name)
    code = f"{name}({', '.join(given)})"
    return None if name is None else expression_replaced(site.program, site.place, code)


propose: Propose[Details] = by_table(Fix("new_name", _new_name))
