"""Somebody's own text in the place of a cell or a file: are its gradients the intended ones?

What was intended is what the program as it ran tells: where it failed, the reference that fits
the failure.  Where it did not, its own gradients are compared, and nothing is called verified.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import decode_source
from pathlib import Path
from typing import TYPE_CHECKING

from ..model import Edit, Kind, Rewrite, What
from ..program import Program, Source

if TYPE_CHECKING:
    from ..verification import Request
    from .session import Session


class NoPlace(ValueError):
    """There is no such cell or file, or it was not said which is meant; the text says so."""


def try_in_session(
    session: Session, candidate: str, cell: int | None, file: str | None, seconds: float
) -> Rewrite:
    """Try a text in the place of a cell that ran (the last one explained, if none is named) or of
    one of the user's files; raises NoPlace."""
    program = session.cells.program()
    if file is not None:
        edit = _edit_of_file(program, file, candidate)
    else:
        edit = _edit_of_cell(program, session.last_cell if cell is None else cell, candidate)
    from ..verification import try_edits

    return try_edits((edit,), _request(session, program, edit, seconds))


def try_script(file: str, candidate: str, seconds: float, *arguments: str) -> Rewrite:
    """Try a text in the place of a script, which is run as `python FILE …`; raises NoPlace."""
    import torch  # noqa: F401  # there is no state to put back before torch is there

    from ..verification import SCRIPT, Checkpoint, Request, try_edits

    path = Path(file).absolute()
    text = _read(path)
    program = Program([Source(None, str(path), text, text, str(path))])
    names = {"__name__": "__main__", "__file__": str(path), "__builtins__": __builtins__}
    with _started_as(path, arguments):
        checkpoint = Checkpoint.take(names)
    try:
        request = Request(program, SCRIPT, checkpoint=checkpoint, seconds=seconds, unknown=True)
        return try_edits((Edit(None, str(path), text, candidate),), request)
    finally:
        if checkpoint is not None:
            checkpoint.discard()


def _edit_of_cell(program: Program, number: int | None, candidate: str) -> Edit:
    if number is None:
        raise NoPlace("no cell has been explained yet: say which one is meant with cell=")
    source = program.cell(number)
    if source is None:
        raise NoPlace(f"In[{number}] has not run")
    return Edit(number, None, source.text, candidate)


def _edit_of_file(program: Program, file: str, candidate: str) -> Edit:
    path = Path(file).absolute()
    if not program.is_user_code(str(path)):
        raise NoPlace(f"{file} is none of the program's own files")
    return Edit(None, str(path), _read(path), candidate)


def _read(path: Path) -> str:
    try:
        with io.open_code(str(path)) as opened:
            return decode_source(opened.read())
    except (OSError, SyntaxError, UnicodeDecodeError) as error:
        raise NoPlace(f"{path} cannot be read: {error}") from None


def _request(session: Session, program: Program, edit: Edit, seconds: float) -> Request:
    """The last failure, where the edit may mend it; else whatever the edited cell did."""
    from ..verification import Request, reference_for

    last, failed, runs = session.last, session.last_cell, session.cells.runs
    about = failed is not None and (edit.cell is None or edit.cell <= failed)
    ended = [run.number for run in runs if run.success is not None]
    to = failed if about else edit.cell or max(ended, default=None)
    if to is None:
        raise NoPlace("no cell has run yet")
    request = Request(
        program,
        to,
        failed=frozenset(r.number for r in runs if r.success is False and r.number != to),
        durations={r.number: r.seconds for r in runs if r.seconds is not None},
        seconds=seconds,
        unknown=True,
    )
    if last is None or not about:
        return request
    found = last.diagnosis
    overwritten = found.finding.event(What.CHANGED) is not None
    kind = Kind.SILENT if found.kind is Kind.NOTE else found.kind
    reference = reference_for(kind, found.message, overwritten, found.signal)
    return replace(
        request,
        kind=kind,
        message=found.message,
        reference=reference,
        awaited=found.finding.awaited,
        awaits_steps=found.finding.awaits_steps,
        unknown=False,
    )


@contextmanager
def _started_as(path: Path, arguments: tuple[str, ...]) -> Iterator[None]:
    """What a script finds that Python has started."""
    before = sys.argv[:], sys.path[:]
    sys.argv[:], sys.path[:0] = [str(path), *arguments], [str(path.parent)]
    try:
        yield
    finally:
        sys.argv[:], sys.path[:] = before
