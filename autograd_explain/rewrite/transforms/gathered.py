"""What an object has gathered of several calls, computed of one call."""

from __future__ import annotations

import libcst as cst

from ...model import Place
from ...program import Program
from ..engine.cst_tools import called_on, head, repeatable, same
from ..engine.draft import Draft
from ..engine.proposal import Edits
from ..engine.tree import statement_at


def object_called(program: Program, place: Place) -> Edits | None:
    """`m.update(p, y)`, then `m.compute()` in the same block -> `m(p, y)`, which gives the value
    of these alone."""
    tree, own = statement_at(program, place)
    call, owner = getattr(own, "value", None), called_on(own)
    if own is None or owner is None or not isinstance(call, cst.Call):
        return None
    inside, at = tree.siblings(own)
    draft = Draft(tree).remove(own)
    for node in (n for other in inside[at + 1 :] for n in head(other)):
        again = called_on(node) if isinstance(node, cst.Call) and not node.args else None
        if again is not None and repeatable(owner) and call.args:
            if same(tree, again, tree.code(owner)):
                if isinstance(tree.statement_of(node), (cst.Assign, cst.Return, cst.AugAssign)):
                    return draft.replace(node, call.with_changes(func=owner)).edits()
    return None
