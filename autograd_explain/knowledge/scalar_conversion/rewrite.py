"""Say that only the number is wanted."""

import ast

from autograd_explain.rewrite import Edits, Fix, Propose, Site, at_place, by_table
from autograd_explain.rewrite.engine.cst_tools import filled
from autograd_explain.rewrite.transforms.call_edits import call_behind, expression_replaced
from autograd_explain.rewrite.transforms.uncut import (
    apply_all,
    code_of,
    node_at,
    tensors_instead_of_copy,
    uncut_at,
)

from .diagnose import Details


def _item(site: Site[Details]) -> Edits | None:
    node = node_at(site.program, site.details.given)
    if node is None:
        return None
    item = filled("{x}.item()", x=code_of(site.program, site.details.given, node))
    return expression_replaced(site.program, site.place, item)


def _stack(site: Site[Details]) -> Edits | None:
    """`torch.tensor([[a, b]])` reads each number out of its tensor."""
    call, given = node_at(site.program, site.place), node_at(site.program, site.details.given)
    if not isinstance(call, ast.Call) or call.args[:1] != [given]:
        return None
    calls = (site.place, *site.details.beside)
    return apply_all(tensors_instead_of_copy(site.program, c, True) for c in calls)


propose: Propose[Details] = by_table(
    Fix("keep", at_place(uncut_at), when=lambda d: d.goes_on, changes=True),
    Fix("item", _item, when=lambda d: d.is_float),
    Fix("stack", _stack, when=lambda d: d.is_list and not d.is_mixed, changes=True),
    Fix(
        "detach",
        lambda s: call_behind(s.program, s.details.given, "detach"),
        when=lambda d: not d.is_list,
    ),
)
