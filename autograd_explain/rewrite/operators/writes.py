"""In-place writes made out of place; views made one at a time, which may be written."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import libcst as cst

from ...model import Edits
from ..analysis.inplace_writes import inplace_calls
from ..engine.cst_tools import keyword, literal_bool, targets
from ..transforms.clone import functional_write
from ..transforms.indexed_loop import element_replaced
from ..transforms.inplace_modules import module_not_inplace
from ..transforms.out_of_place import out_of_place
from .site import Change, Site


def not_in_place(site: Site) -> Iterator[Change]:
    """`x += 1`, `x.add_(1)`, `F.relu(x, inplace=True)`, `out=`: a new tensor under the old name."""
    own, scope = site.statement, f"{id(site.tree.scope_of(site.statement))}"

    def change(how: Callable[..., Edits | None], *args: str, group: str = "") -> Change:
        return site.change("out_of_place", own, site.made(how, *args), group=group)

    calls = inplace_calls(site.tree, own)
    if calls or isinstance(own, cst.AugAssign) or _stores_part(site):
        yield change(out_of_place, group=scope)
        yield change(functional_write, group=scope)
        yield change(element_replaced)
    if isinstance(own, cst.AugAssign) and isinstance(own.target, cst.Subscript):
        yield change(out_of_place, site.tree.code(own.target))
    for call in site.calls:
        flag = keyword(call, "inplace")
        if flag is not None and literal_bool(flag.value):
            off = (flag.value, cst.Name("False"))
            yield site.change("out_of_place", call, site.replaced, *off, group="inplace")
    if site.calls:
        yield change(module_not_inplace)


def _stores_part(site: Site) -> bool:
    return isinstance(site.statement, cst.Assign) and any(
        isinstance(t, cst.Subscript) or (isinstance(t, cst.Attribute) and t.attr.value == "data")
        for t in targets(site.statement)
    )
