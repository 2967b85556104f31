"""Say that only the number is wanted."""

import ast

from autograd_explain.rewrite import Edits, Fix, Propose, Site, at_place, by_table
from autograd_explain.rewrite.transforms.copied_object import called_instead
from autograd_explain.rewrite.transforms.uncut import apply_all, tensors_instead_of_copy, uncut_at

from .diagnose import Details


def _stack(site: Site[Details]) -> Edits | None:
    """`torch.tensor([[a, b]])` reads each number out of its tensor."""
    call, given = site.node, site.at(site.details.given).node
    if not isinstance(call, ast.Call) or call.args[:1] != [given]:
        return None
    calls = (site.place, *site.details.beside)
    return apply_all(tensors_instead_of_copy(site.program, c, True) for c in calls)


propose: Propose[Details] = by_table(
    lambda s: called_instead(s.program, s.details.twins),
    Fix("keep", at_place(uncut_at), when=lambda d: d.goes_on, changes=True),
    Fix("item", lambda s: s.replaced("{x}.item()", x=s.details.given), when=lambda d: d.is_float),
    Fix("stack", _stack, when=lambda d: d.is_list and not d.is_mixed, changes=True),
    Fix("detach", lambda s: s.at(s.details.given).called("detach"), when=lambda d: not d.is_list),
)
