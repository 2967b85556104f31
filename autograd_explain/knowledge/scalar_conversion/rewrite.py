"""Say that only the number is wanted."""

import ast

from autograd_explain.rewrite.engine.fixes import Fix, Propose, Site, by_table
from autograd_explain.rewrite.engine.proposal import Edits
from autograd_explain.rewrite.transforms.call_edits import call_behind, expression_replaced
from autograd_explain.rewrite.transforms.uncut import code_of, node_at

from .diagnose import Details


def _item(site: Site[Details]) -> Edits | None:
    given = site.details.given
    node = node_at(site.program, given)
    if node is None or given is None:
        return None
    code = code_of(site.program, given, node)
    plain = isinstance(node, (ast.Name, ast.Attribute, ast.Subscript, ast.Call))
    item = f"{code if plain else f'({code})'}.item()"
    return expression_replaced(site.program, site.place, item)


propose: Propose[Details] = by_table(
    Fix("item", _item, when=lambda d: d.is_float),
    Fix("detach", lambda s: call_behind(s.program, s.details.given, "detach")),
)
