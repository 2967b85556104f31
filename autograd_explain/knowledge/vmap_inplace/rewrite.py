"""The same operation without the underscore; a buffer as large as the values are."""

import ast

from autograd_explain.program import called_name
from autograd_explain.rewrite import Edits, Fix, Propose, Site, at_place, by_table
from autograd_explain.rewrite.transforms.call_edits import expression_replaced
from autograd_explain.rewrite.transforms.uncut import node_at

from .buffers import as_local, batched
from .diagnose import Written

_SAME_NAME = frozenset("add_ sub_ mul_ div_ scatter_ scatter_add_ index_add_ index_copy_".split())


def _out_of_place(site: Site[Written]) -> Edits | None:
    node, source = node_at(site.program, site.place), site.program.source_at(site.place)
    name = called_name(node)
    if source is None or node is None or name not in _SAME_NAME:
        return None
    if isinstance(source.parents.get(node), ast.Expr):
        return None  # its result is thrown away: only the write counts
    return expression_replaced(
        site.program, site.place, f"{{owner}}.{name.rstrip('_')}{{arguments}}"
    )


propose: Propose[Written] = by_table(
    Fix("out_of_place", _out_of_place),
    Fix("out_of_place", at_place(as_local), when=lambda d: d.captured),
    *(Fix("batched", at_place(batched, number)) for number in range(3)),
)
