"""A correct training program and the same program with one bug."""

from __future__ import annotations

from dataclasses import dataclass

#: Ends the lines that are at fault; never part of a program.
MARK = "  #!"


@dataclass(frozen=True)
class Injected:
    """`right` and `wrong` are notebooks, a text for each cell.

    `guilty` are the acceptable [cell, line] places of the statement at fault in `wrong`, both
    counted from 1; `grads` are expressions whose values, after the last cell of `right`, a repair
    must give.
    """

    name: str
    kind: str
    right: tuple[str, ...]
    wrong: tuple[str, ...]
    guilty: frozenset[tuple[int, int]]
    grads: tuple[str, ...]

    @property
    def silent(self) -> bool:
        return self.kind == "data"


def injected(
    name: str, kind: str, right: list[str], wrong: list[str], grads: list[str]
) -> Injected:
    """Texts with marked lines become a case."""
    guilty = {
        (cell, line)
        for cell, text in enumerate(wrong, 1)
        for line, source in enumerate(text.splitlines(), 1)
        if source.endswith(MARK)
    }
    assert guilty, name
    return Injected(name, kind, _plain(right), _plain(wrong), frozenset(guilty), tuple(grads))


def _plain(cells: list[str]) -> tuple[str, ...]:
    return tuple("\n".join(x.removesuffix(MARK) for x in c.splitlines()) for c in cells)


def indent(lines: list[str], by: int = 1) -> list[str]:
    return [("    " * by + line) if line else line for line in lines]
