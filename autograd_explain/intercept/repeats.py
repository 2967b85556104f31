"""The reports that were shown, so that the same failure again is a line.

The same is what is the same in everything that is told, and of cells with the same text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .cells import Run

if TYPE_CHECKING:
    from ..render.explanation import Explanation
    from ..render.repeated import Repeated

_MOST = 200  #: reports that are known again
#: A cell's number in what is told and in the places of a diagnosis; it is another at each run.
_NUMBER = re.compile(r"(?:cell=|In\[)(\d+)")


@dataclass
class _Shown:
    """Where a report was shown for the last time in full, and how often it was told."""

    run: Run | None
    count: int = 1


class Repeats:
    """Remembers no explanation, only how it is known again."""

    def __init__(self) -> None:
        self._shown: dict[int, _Shown] = {}

    def repeated(
        self, explanation: Explanation, run: Run | None, runs: Sequence[Run], in_kernel: bool
    ) -> Repeated | None:
        """What to show in the place of a report that was shown before; None for a new one.

        `run` is the cell that it stands under, None for a callback between cells.
        """
        from ..render.repeated import Repeated

        key = _key(explanation, runs)
        before = self._shown.pop(key, None)
        self._shown[key] = shown = before or _Shown(run)
        while len(self._shown) > _MOST:
            del self._shown[next(iter(self._shown))]
        if before is None:
            return None
        shown.count += 1
        home = _stands(before.run, run, runs, in_kernel)
        if home is None:
            shown.run = run
        return Repeated(explanation, shown.count, home)


def _key(explanation: Explanation, runs: Sequence[Run]) -> int:
    texts = {str(run.number): str(hash(run.text.strip())) for run in runs}
    told = f"{explanation.language} {explanation.detail} {explanation.diagnosis!r}"
    return hash(_NUMBER.sub(lambda found: texts.get(found[1], found[1]), told))


def _stands(home: Run | None, run: Run | None, runs: Sequence[Run], in_kernel: bool) -> int | None:
    """The number of the cell under which a report can still be read.

    A terminal keeps what it has shown.  A notebook takes a cell's output away when the cell runs
    again, and what a callback has shown whenever the program likes.
    """
    if home is None or run is None:
        return None
    if not in_kernel:
        return home.number
    if home.cell_id is None or run.cell_id is None:
        return None
    later = (other.cell_id for other in runs if other.number > home.number)
    return None if home.cell_id in later else home.number
