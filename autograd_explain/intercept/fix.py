"""`%autograd_fix`: a rewrite goes into the next input, or is shown where it cannot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError

from ..model import Rewrite
from . import screen

if TYPE_CHECKING:
    from ..render.explanation import Explanation


def offer(shell: Any, last: Explanation | None, cell: int | None, number: str) -> None:
    """Rewrite `number` of the report on `cell`: all of its edits, each put in or shown."""
    for edit in _chosen(last, number).edits:
        if edit.cell is not None and edit.cell == cell:
            shell.set_next_input(edit.new_source)
        else:
            screen.say(edit.diff)


def _chosen(last: Explanation | None, number: str) -> Rewrite:
    if last is None:
        raise UsageError("Nothing has been explained yet: run a cell that fails first")
    rewrites = last.diagnosis.rewrites
    if not rewrites:
        raise UsageError("The last report has no rewrite")
    if not number.isdigit() or not 1 <= int(number) <= len(rewrites):
        raise UsageError(f"%autograd_fix takes a number from 1 to {len(rewrites)}, not {number!r}")
    return rewrites[int(number) - 1]
