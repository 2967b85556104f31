"""A value that nothing reads, put where the result reads the one that it was made of."""

from __future__ import annotations

from functools import partial

import libcst as cst

from autograd_explain.program import Program
from autograd_explain.rewrite import Edits
from autograd_explain.rewrite.engine.draft import Draft
from autograd_explain.rewrite.engine.edits import then
from autograd_explain.rewrite.engine.tree import statement_at
from autograd_explain.rewrite.transforms.move_statement import move_after

from .diagnose import Unread


def read_instead(program: Program, values: tuple[Unread, ...]) -> Edits | None:
    """`edges = near(pos)`, before `moved = pos @ strain` -> `edges = near(moved)` behind it."""
    tree, own = statement_at(program, values[0].read)
    found = [(n, v.name) for v in values for n in tree.at(v.read) if isinstance(n, cst.Name)]
    if own is None or len(found) != len(values):
        return None
    draft = Draft(tree)
    for node, name in found:
        draft.replace(node, cst.Name(name))
    made = [statement_at(program, v.made) for v in values]
    later = [s for t, s in made if s is not None and t is tree and tree.start(s) > tree.start(own)]
    if not later:
        return draft.edits()
    places = tree.place(own), tree.place(max(later, key=tree.start))
    # It may pass what it does not read yet: the value that it then reads is made there.
    if move_after(program, *places) is None:
        return None
    return then(program, draft.edits(), partial(move_after, checked=False), *places)
