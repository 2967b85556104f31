"""`%autograd_fix`: a rewrite takes the place of a cell, is handed over, or is written to a file.

A front end replaces the text of the cell that runs and of no other: so `%%autograd_fix` heads the
cell that is to be rewritten, and `%autograd_fix` alone in a cell gives its own place away.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError

from ..loaded import is_on_disk
from ..model import Edit, Rewrite, lines_of
from . import screen

if TYPE_CHECKING:
    from ..render.explanation import Explanation


@dataclass(frozen=True)
class Request:
    """What was asked for: `body` is the cell under `%%autograd_fix`, None under the line magic;
    `replace`: the cell that asks holds nothing else and may be replaced."""

    number: str
    body: str | None = None
    write: bool = False
    replace: bool = False


def offer(
    shell: Any, last: Explanation | None, failed: int | None, request: Request, language: str
) -> None:
    """All edits of a rewrite of the report on cell `failed`; UsageError where that cannot be."""
    rewrite = _chosen(last, request.number)
    if request.body is not None:
        shell.set_next_input(_edit_of(rewrite, request.body).new_source, replace=True)
        return
    for edit in rewrite.edits:
        if edit.file is not None:
            screen.say(edit.diff)
            _settle_file(edit, request, language)
    _hand_over(shell, [e for e in rewrite.edits if e.cell is not None], failed, request, language)


def _chosen(last: Explanation | None, number: str) -> Rewrite:
    if last is None:
        raise UsageError("Nothing has been explained yet: run a cell that fails first")
    rewrites = last.diagnosis.rewrites
    if not rewrites:
        raise UsageError("The last report has no rewrite")
    if not number.isdecimal() or not 1 <= int(number) <= len(rewrites):
        raise UsageError(f"%autograd_fix takes a number from 1 to {len(rewrites)}, not {number!r}")
    return rewrites[int(number) - 1]


def _edit_of(rewrite: Rewrite, body: str) -> Edit:
    """The edit of the cell that the magic heads."""
    cells = [edit for edit in rewrite.edits if edit.cell is not None]
    for edit in cells:
        if edit.old_source.strip() == body.strip():
            return edit
    if not cells:
        raise UsageError("This rewrite changes no cell; %autograd_fix shows what it changes")
    names = ", ".join(f"In[{edit.cell}]" for edit in cells)
    raise UsageError(
        f"The text of this cell is not that of {names}, which the rewrite changes; "
        "%autograd_fix in a cell of its own hands the changed text over"
    )


def _hand_over(
    shell: Any, edits: Sequence[Edit], failed: int | None, request: Request, language: str
) -> None:
    """Front ends take one text: the failed cell's, else the first; the others are printed."""
    ordered = sorted(edits, key=lambda edit: edit.cell != failed)
    texts = [e.new_source if e.cell == failed else _marked(e, language) for e in ordered]
    for text in texts[1:]:
        screen.say(text)
    if texts:
        shell.set_next_input(texts[0], replace=request.replace)


def _marked(edit: Edit, language: str) -> str:
    """The text of an earlier cell, which says whose place it is to take; a cell magic stays the
    first line."""
    mark = "# " + screen.line("fix_instead_of", language, cell=f"In[{edit.cell}]") + "\n"
    lines = lines_of(edit.new_source, keepends=True)
    magics = next((n for n, li in enumerate(lines) if not li.startswith("%%")), len(lines))
    if magics and not lines[magics - 1].endswith("\n"):
        mark = "\n" + mark
    return "".join((*lines[:magics], mark, *lines[magics:]))


def _settle_file(edit: Edit, request: Request, language: str) -> None:
    name = os.path.basename(edit.file or "")
    if not request.write:
        screen.show_line("fix_write", language, number=request.number, file=name)
        return
    write(edit)
    screen.show_line("fix_written", language, file=name)


def write(edit: Edit) -> None:
    """Put an edit into the user's file, with its encoding, line ends and permissions.

    UsageError where the file is not as it was when the rewrite was made, or cannot be written.
    """
    path = os.path.realpath(edit.file or "")
    if not is_on_disk(path, edit.old_source):
        raise UsageError(f"{edit.file} was changed since the report: nothing was written")
    try:
        _replace(path, edit)
    except OSError as error:
        raise UsageError(f"{edit.file}: {error.strerror or error}: nothing was written") from None


def _replace(path: str, edit: Edit) -> None:
    with open(path, "rb") as file:
        encoding = tokenize.detect_encoding(file.readline)[0]
        file.seek(0)
        old = file.read()
    ends = "\r\n" if b"\r\n" in old else "\n"
    text = edit.new_source
    if not old.endswith((b"\n", b"\r")):
        text = text.removesuffix("\n")  # linecache has added it
    # As a whole or not at all: half a file would be worse than none.
    handle, made = tempfile.mkstemp(dir=os.path.dirname(path))
    try:
        with open(handle, "w", encoding=encoding, newline=ends) as file:
            file.write(text)
        shutil.copymode(path, made)
        os.replace(made, path)
    except BaseException:
        os.unlink(made)
        raise
