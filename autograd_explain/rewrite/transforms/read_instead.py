"""A value that nothing reads, put where the result reads the one that it was made of."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import libcst as cst

from ...model import Edits, Place
from ...program import Program
from ..engine.draft import Draft
from ..engine.edits import then
from ..engine.tree import statement_at
from .move_statement import move_after


def read_instead(program: Program, values: Sequence[tuple[str, Place, Place]]) -> Edits | None:
    """`edges = near(pos)`, before `moved = pos @ strain` -> `edges = near(moved)` behind it.

    Of each value the name, where it is made, and where it is to be read, in one statement.
    """
    if not values:
        return None
    tree, own = statement_at(program, values[0][2])
    found = [(n, name) for name, _, at in values for n in tree.at(at) if isinstance(n, cst.Name)]
    if own is None or len(found) != len(values):
        return None
    draft = Draft(tree)
    for node, name in found:
        draft.replace(node, cst.Name(name))
    makers = [statement_at(program, made) for _, made, _ in values]
    later = [
        s for t, s in makers if s is not None and t is tree and tree.start(s) > tree.start(own)
    ]
    if not later:
        return draft.edits()
    places = tree.place(own), tree.place(max(later, key=tree.start))
    # It may pass what it does not read yet: the value that it then reads is made there.
    if move_after(program, *places) is None:
        return None
    return then(program, draft.edits(), partial(move_after, checked=False), *places)
