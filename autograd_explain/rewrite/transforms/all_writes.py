"""All in-place writes to one name made out of place, on top of other edits."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import libcst as cst

from ...model import Edits, Place
from ...program import Program
from ..engine.cst_tools import dotted, targets
from ..engine.edits import then
from ..engine.tree import Tree, statement_at, tree_at
from .clone import functional_write
from .out_of_place import out_of_place

_MOST_WRITES = 8


def every_write(
    program: Program,
    edits: Edits | None,
    place: Place,
    name: str,
    around: Callable[[Tree], Iterable[cst.CSTNode]],
    *,
    parts: bool = False,
) -> Edits | None:
    """`edits`, and on top of them new tensors instead of every write to `name` inside the nodes
    that `around` finds; None where the write at `place` cannot be one.

    `parts` also takes writes to parts of the tensor (`x[mask] = 0`).
    """

    def make(edited: Program, now: Place) -> Edits | None:
        made = out_of_place(edited, now, name)
        if made is None and parts and _writes_part(edited, now, name):
            made = functional_write(edited, now, name)
        return made

    def of_next(edited: Program, now: Place) -> Edits | None:
        tree = tree_at(edited, now)
        places = _inside(tree, around(tree))
        return next((made for p in places if (made := make(edited, p))), None)

    line = replace(place, span=None)
    found = then(program, edits, make, line)
    for _ in range(_MOST_WRITES):
        following = then(program, found, of_next, line)
        if following is None:
            break
        found = following
    return found


def _writes_part(program: Program, place: Place, name: str) -> bool:
    _, found = statement_at(program, place)
    written = [] if found is None else targets(found)
    return any(isinstance(t, cst.Subscript) and dotted(t.value) == name for t in written)


def _inside(tree: Tree, nodes: Iterable[cst.CSTNode]) -> list[Place]:
    """The places of the small statements inside some nodes."""
    outer = list(nodes)
    small = [s for s in tree.statements if isinstance(s, cst.BaseSmallStatement)]
    return [tree.place(s) for s in small if any(tree.inside(s, node) for node in outer)]
