"""`%autograd_fix`: a rewrite goes into the next input, or is shown where it cannot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError

from ..model import Edit, Rewrite

if TYPE_CHECKING:
    from ..render.explanation import Explanation


def offer(shell: Any, last: Explanation | None, number: str) -> None:
    rewrite = _chosen(last, number)
    here = _failing_cell(last)
    for edit in rewrite.edits:
        if edit.cell is not None and edit.cell == here:
            shell.set_next_input(edit.new_source)
        else:
            _show(edit)


def _chosen(last: Explanation | None, number: str) -> Rewrite:
    if last is None:
        raise UsageError("Nothing has been explained yet: run a cell that fails first")
    rewrites = last.diagnosis.rewrites
    if not rewrites:
        raise UsageError("The last report has no rewrite")
    if not number.isdigit() or not 1 <= int(number) <= len(rewrites):
        raise UsageError(f"%autograd_fix takes a number from 1 to {len(rewrites)}, not {number!r}")
    return rewrites[int(number) - 1]


def _failing_cell(last: Explanation | None) -> int | None:
    """The cell that the user ran: the last place of the report that is in a cell."""
    if last is None:
        return None
    events = last.diagnosis.finding.events
    cells = [e.place.cell for e in events if e.place is not None and e.place.cell is not None]
    edits = [e.cell for r in last.diagnosis.rewrites for e in r.edits if e.cell is not None]
    return max([*cells, *edits], default=None)


def _show(edit: Edit) -> None:
    print(edit.diff)
