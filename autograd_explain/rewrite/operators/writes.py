"""In-place writes made out of place, and new values written into the tensor that is there."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import libcst as cst

from ..analysis.inplace_writes import inplace_calls
from ..engine.cst_tools import keyword, literal_bool, repeatable, targets
from ..engine.cst_tools import statement as make
from ..engine.draft import Draft
from ..engine.proposal import Edits
from ..transforms.grad_mode import with_guard
from ..transforms.index_write import functional_write
from ..transforms.inplace_modules import module_not_inplace
from ..transforms.loop_elements import element_replaced
from ..transforms.out_of_place import out_of_place
from .site import Change, Site


def not_in_place(site: Site) -> Iterator[Change]:
    """`x += 1`, `x.add_(1)`, `F.relu(x, inplace=True)`, `out=`: a new tensor under the old name."""
    code, program = site.tree.code(site.statement).strip(), site.program
    scope = f"{id(site.tree.scope_of(site.statement))}"
    calls = inplace_calls(site.tree, site.imports, site.statement)
    if calls or isinstance(site.statement, cst.AugAssign) or _stores_part(site):
        yield Change(
            "out_of_place", site, code, lambda: out_of_place(program, site.place), group=scope
        )
        yield Change(
            "out_of_place", site, code, lambda: functional_write(program, site.place), group=scope
        )
        yield Change("out_of_place", site, code, lambda: element_replaced(program, site.place))
    if isinstance(site.statement, cst.AugAssign) and isinstance(
        site.statement.target, cst.Subscript
    ):
        element = site.tree.code(site.statement.target)
        yield Change("out_of_place", site, code, lambda: out_of_place(program, site.place, element))
    for call in site.calls:
        flag = keyword(call, "inplace")
        if flag is not None and literal_bool(flag.value):
            yield Change(
                "out_of_place", site, site.tree.code(call),
                partial(site.replaced, flag.value, cst.Name("False")), group="inplace",
            )  # fmt: skip
    if site.calls:
        yield Change("out_of_place", site, code, lambda: module_not_inplace(program, site.place))


def written_into(site: Site) -> Iterator[Change]:
    """`w = w - lr * g` -> `w.copy_(w - lr * g)` under no_grad: the leaf stays the one it was."""
    statement = site.statement
    if isinstance(statement, cst.Assign) and len(statement.targets) == 1:
        target = targets(statement)[0]
        if isinstance(target, (cst.Name, cst.Attribute, cst.Subscript)) and repeatable(target):
            yield Change(
                "written_into", site, site.tree.code(target),
                lambda: _copied_into(site, target, statement.value), group="update",
            )  # fmt: skip


def _stores_part(site: Site) -> bool:
    return isinstance(site.statement, cst.Assign) and any(
        isinstance(t, cst.Subscript) or (isinstance(t, cst.Attribute) and t.attr.value == "data")
        for t in targets(site.statement)
    )


def _copied_into(site: Site, target: cst.BaseExpression, value: cst.BaseExpression) -> Edits | None:
    guard = site.imports.local("torch.no_grad")
    if guard is None:
        return None
    draft = Draft(site.tree)
    draft.instead(site.statement, [make("{x}.copy_({v})", x=target, v=value)])
    draft.wrap(site.statement, site.statement, partial(with_guard, guard))
    return draft.edits()
