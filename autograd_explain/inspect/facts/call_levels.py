"""Events at one level of the user's program.

Two events may have happened in functions called from the same place, one above or both in a loop
inside a function that the cell calls.  To move one behind the other one needs the statements at the
innermost level where their call chains differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...model import Place

Path = tuple[Place, ...]


def at_one_level(paths: Sequence[Path]) -> tuple[Place, ...]:
    """One place for each path: the first at which the paths are not all on the same line."""
    depth = 0
    while all(len(p) > depth + 1 for p in paths) and len({p[depth].line_id for p in paths}) == 1:
        depth += 1
    return tuple(p[depth] for p in paths)


def distinct(places: Iterable[Place]) -> tuple[Place, ...]:
    """One place for each line, in order."""
    return tuple({p.line_id: p for p in places}.values())
