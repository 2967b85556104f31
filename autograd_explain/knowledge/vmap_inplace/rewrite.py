"""The same operation without the underscore."""

import ast
from collections.abc import Iterator

from autograd_explain.model import Finding, What
from autograd_explain.program import Program
from autograd_explain.program_index import index_of
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.uncut import apply_patches, code_of, node_at, replacement

_SAME_NAME = frozenset("add_ sub_ mul_ div_ scatter_ scatter_add_ index_add_ index_copy_".split())


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause = finding.event(What.CAUSE)
    node = None if cause is None else node_at(program, cause.place)
    if cause is None or cause.place is None or not isinstance(node, ast.Call):
        return
    function = node.func
    if not isinstance(function, ast.Attribute) or function.attr not in _SAME_NAME:
        return
    if _is_statement(program, node):  # its result is thrown away: only the write counts
        return
    place = cause.place
    old = code_of(program, place, node)
    owner = code_of(program, place, function.value)
    rest = old[len(owner) :].replace(function.attr, function.attr.rstrip("_"), 1)
    edits = apply_patches(replacement(program, place, owner + rest))
    if edits:
        yield Proposal("out_of_place", edits)


def _is_statement(program: Program, node: ast.expr) -> bool:
    return any(n.value is node for _, n in index_of(program).nodes(ast.Expr))
