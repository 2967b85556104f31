"""A computed tensor put where an object keeps the numbers of it."""

from __future__ import annotations

from collections.abc import Sequence

from ...model import Edits, Place
from ...program import Program
from ..analysis.effects import fresh
from ..engine.cst_tools import filled
from ..engine.draft import Drafts
from ..engine.tree import Statement, statement_at

#: The statement, the object, its attribute, what is written there ("" where that is not known),
#: whether the attribute is a parameter, and whether it has one element.
GivenTo = tuple[Place, str, str, str, bool, bool]


def with_graph(program: Program, given: Sequence[GivenTo]) -> Edits | None:
    """`kernel.width = net(z)`, which writes into `kernel.raw_width` ->
    `raw_width = kernel.inverse(net(z)).expand_as(kernel.raw_width)`; `del kernel.raw_width`;
    `kernel.raw_width = raw_width`.

    None where it is not known what is written, or a statement gives several.
    """
    drafts, changed = Drafts(), set[Statement]()
    for place, holder, attribute, written, parameter, single in given:
        tree, own = statement_at(program, place)
        if own is None or not written or own in changed:
            return None
        name, kept = fresh(tree, own, attribute), f"{holder}.{attribute}"
        shaped = "view_as" if single else "expand_as"
        lines = [
            f"{name} = {filled(f'{{value}}.{shaped}({kept})', value=written)}",
            *([f"del {kept}"] if parameter else []),  # a parameter takes no computed tensor
            f"{kept} = {name}",
        ]
        drafts[tree].instead(own, "\n".join(lines))
        changed.add(own)
    return drafts.edits()
