"""`x[mask] = v` -> a write into a copy."""

from __future__ import annotations

from ...model import Place
from ...program import Program
from ..analysis.inplace_writes import inplace_calls, is_view, written_places
from ..engine.imports import imports_at
from ..engine.proposal import Edits
from ..engine.tree import tree_at
from .clone import clone_before_write
from .out_of_place import out_of_place


def functional_write(program: Program, place: Place, target: str | None = None) -> Edits | None:
    """A write to a part of a tensor that leaves the old one alone: `x = x.clone()` goes on a line
    before it, which is right for every index and value."""
    return clone_before_write(program, place, target) if _writes_part(program, place) else None


def new_tensor(program: Program, place: Place) -> Edits | None:
    """A new tensor instead of the write at a place, to the whole or to a part of it."""
    return out_of_place(program, place) or functional_write(program, place)


def _writes_part(program: Program, place: Place) -> bool:
    """Whether the place writes to a part of a tensor: by item, or through `x[0].add_(1)`."""
    tree = tree_at(program, place)
    imports = imports_at(program, place)
    for statement in tree.candidates(place):
        places = [*written_places(statement)]
        places += [c.target for c in inplace_calls(tree, imports, statement)]
        if any(is_view(p) for p in places):
            return True
    return False
