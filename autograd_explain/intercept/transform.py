"""`%%autograd_check` becomes a line of the cell it heads.

A cell magic that executes its body cannot do what a cell does: it has no event loop to `await`
in, its frames stand in the traceback, lines are counted from its body.  So the first line is
replaced by a call, before IPython looks for cell magics, and the cell runs as it would without.
"""

from __future__ import annotations

import re
from typing import Any

from IPython.core.inputtransformer2 import cell_magic

_HEAD = re.compile(r"%%autograd_check(?:[ \t]+(?P<options>\S.*?))?[ \t]*\r?\n?\Z")


def check_line(lines: list[str]) -> list[str]:
    """Replace a first line `%%autograd_check …`; other cell magics may follow it."""
    head = _HEAD.match(lines[0]) if lines else None
    rest = lines[1:]
    start = next((i for i, line in enumerate(rest) if line.strip()), None)
    if head is None or start is None:
        return lines  # an empty body: IPython's own complaint about an empty cell magic fits
    arguments = " ".join(filter(None, ("cell", head["options"])))
    call = f"get_ipython().run_line_magic('autograd_check', {arguments!r})\n"
    body = check_line(rest[start:])
    return [call, *rest[:start], *cell_magic(body)]  # type: ignore[no-untyped-call]


# `check_complete` skips what has side effects: a terminal waits for a cell magic's body as usual.
check_line.has_side_effects = True  # type: ignore[attr-defined]


def install(shell: Any) -> None:
    transforms = shell.input_transformer_manager.line_transforms
    if check_line not in transforms:
        transforms.insert(0, check_line)


def remove(shell: Any) -> None:
    transforms = shell.input_transformer_manager.line_transforms
    if check_line in transforms:
        transforms.remove(check_line)
