"""The same operation without the underscore."""

import ast

from autograd_explain.program import Program
from autograd_explain.program_index import index_of
from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.transforms.uncut import apply_patches, code_of, node_at, replacement

_SAME_NAME = frozenset("add_ sub_ mul_ div_ scatter_ scatter_add_ index_add_ index_copy_".split())


def _out_of_place(site: Site[object]) -> Edits | None:
    program, place = site.program, site.place
    node = node_at(program, place)
    function = node.func if isinstance(node, ast.Call) else None
    if node is None or not isinstance(function, ast.Attribute) or function.attr not in _SAME_NAME:
        return None
    if _is_statement(program, node):  # its result is thrown away: only the write counts
        return None
    old = code_of(program, place, node)
    owner = code_of(program, place, function.value)
    rest = old[len(owner) :].replace(function.attr, function.attr.rstrip("_"), 1)
    return apply_patches(replacement(program, place, owner + rest))


def _is_statement(program: Program, node: ast.expr) -> bool:
    return any(n.value is node for _, n in index_of(program).nodes(ast.Expr))


propose: Propose[object] = by_table(Fix("out_of_place", _out_of_place))
