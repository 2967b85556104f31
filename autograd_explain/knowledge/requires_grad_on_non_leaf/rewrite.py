"""Detach a value that should carry no gradient; ask for the gradient of one that should."""

import ast
from dataclasses import replace

from autograd_explain.rewrite import Edits, Fix, Propose, Site, at_place, by_table
from autograd_explain.rewrite.transforms.call_edits import statement_replaced
from autograd_explain.rewrite.transforms.keep_gradient import new_leaf
from autograd_explain.rewrite.transforms.uncut import apply_patches, code_of, node_at, replacement

from .diagnose import Details


def _retained(site: Site[Details]) -> Edits | None:
    node = node_at(site.program, site.place)
    if not isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
        return None  # a value without a name: its gradient could not be read afterwards
    name = code_of(site.program, site.place, node)
    return statement_replaced(site.program, site.place, f"{name}.retain_grad()\n")


def _detached(site: Site[Details]) -> Edits | None:
    """`x.requires_grad = False` -> `x = x.detach()`; within an expression `x.detach()`."""
    program, place = site.program, site.place
    node, source = node_at(program, place), program.source_at(place)
    if source is None or node is None:
        return None
    name = code_of(program, place, node)
    method = source.parents[node]
    call = source.parents[method]
    called = isinstance(call, ast.Call) and call.func is method
    if called and not isinstance(source.parents[call], ast.Expr):
        where = replace(place, span=source.span(call))
        return apply_patches(replacement(program, where, f"{name}.detach()"))
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return None
    return statement_replaced(program, place, f"{name} = {name}.detach()\n")


propose: Propose[Details] = by_table(
    Fix("new_leaf", at_place(new_leaf, flagged=True), when=lambda d: d.replaced),
    Fix("retain_grad", _retained, when=lambda d: d.wanted and not d.replaced),
    Fix("detach", _detached, when=lambda d: not d.wanted),
)
