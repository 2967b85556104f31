"""The same operation without the underscore; a buffer as large as the values are."""

import ast

from autograd_explain.program import called_name
from autograd_explain.rewrite import Edits, Fix, Propose, Site, at_place, by_table

from .buffers import as_local, batched
from .diagnose import Written

_SAME_NAME = frozenset("add_ sub_ mul_ div_ scatter_ scatter_add_ index_add_ index_copy_".split())


def _out_of_place(site: Site[Written]) -> Edits | None:
    name = called_name(site.node)
    if name not in _SAME_NAME or isinstance(site.outer, ast.Expr):
        return None  # where its result is thrown away only the write counts
    return site.replaced(f"{{owner}}.{name.rstrip('_')}{{arguments}}")


propose: Propose[Written] = by_table(
    Fix("out_of_place", _out_of_place),
    Fix("out_of_place", at_place(as_local), when=lambda d: d.captured),
    *(Fix("batched", at_place(batched, number)) for number in range(3)),
)
