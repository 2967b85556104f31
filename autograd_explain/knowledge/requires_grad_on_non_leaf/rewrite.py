"""Detach a value that should carry no gradient; ask for the gradient of one that should."""

import ast
from functools import partial

from autograd_explain.model import Place
from autograd_explain.program import Program
from autograd_explain.rewrite import Edits, Fix, Propose, Site, at_place, by_table
from autograd_explain.rewrite.analysis.effects import fresh
from autograd_explain.rewrite.engine.edits import each
from autograd_explain.rewrite.engine.tree import tree_at
from autograd_explain.rewrite.transforms.call_edits import (
    call_behind,
    detached_instead,
    expression_replaced,
    line_before,
    statement_replaced,
)
from autograd_explain.rewrite.transforms.keep_gradient import new_leaf
from autograd_explain.rewrite.transforms.uncut import code_of, node_at

from .computed_weight import Instead
from .diagnose import Details


def _retained(site: Site[Details]) -> Edits | None:
    node = node_at(site.program, site.place)
    if not isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
        return None  # a value without a name: its gradient could not be read afterwards
    name = code_of(site.program, site.place, node)
    return statement_replaced(site.program, site.place, f"{name}.retain_grad()\n")


def _instead(site: Site[Details]) -> Edits | None:
    instead = site.details.instead
    return each(site.program, ((partial(_made, part=part), part.place) for part in instead))


def _made(program: Program, place: Place, part: Instead) -> Edits | None:
    return (expression_replaced if part.element else statement_replaced)(program, place, part.code)


def _is_kept(details: Details) -> bool:
    return details.wanted and not (details.replaced or details.instead or details.library)


def _rows_frozen(site: Site[Details]) -> Edits | None:
    """`w[:3].requires_grad_(False)` -> a hook of `w` that keeps nothing of the gradient there."""
    node, tree = node_at(site.program, site.place), tree_at(site.program, site.place)
    statement = tree.statement(site.place)
    if not isinstance(node, ast.Subscript) or statement is None:
        return None
    whole, mask = ast.unparse(node.value), fresh(tree, statement, "frozen")
    part = ast.unparse(ast.Subscript(ast.Name(mask), node.slice))
    return statement_replaced(
        site.program,
        site.place,
        f"{mask} = {whole}.new_zeros({whole}.shape, dtype=bool)\n"
        f"{part} = True\n"
        f"{whole}.register_hook(lambda grad, {mask}={mask}: grad.masked_fill({mask}, 0))\n",
    )


def _switched(site: Site[Details]) -> Edits | None:
    return line_before(site.program, site.details.call, site.details.switch)


def _detached(site: Site[Details]) -> Edits | None:
    """Of what a library is handed the whole expression."""
    if site.details.library:
        return call_behind(site.program, site.place, "detach")
    return None if site.place is None else detached_instead(site.program, site.place)


propose: Propose[Details] = by_table(
    Fix("parameters", _instead, when=lambda d: bool(d.instead)),
    Fix("new_leaf", at_place(new_leaf, flagged=True), when=lambda d: d.replaced),
    Fix("retain_grad", _retained, when=_is_kept),
    Fix("switch", _switched, when=lambda d: bool(d.switch)),
    Fix("rows", _rows_frozen, when=lambda d: d.part and not (d.wanted or d.instead)),
    Fix("detach", _detached, when=lambda d: not (d.wanted or d.instead or d.part)),
)
