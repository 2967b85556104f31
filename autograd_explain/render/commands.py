"""What a text may tell its reader to run: magics in a notebook, a shell's commands outside.

A text names them as facts, `{record_command}`; a sentence about what is not to be had is dropped.
"""

from __future__ import annotations

from collections.abc import Mapping

_NOTEBOOK = {"record_command": "%%autograd_check", "graph_command": "%autograd_graph loss"}
_SHELL = {"record_command": "python -m autograd_explain run --check"}


def commands(outside: bool = False) -> Mapping[str, str]:
    """The commands by their names in texts; those of a shell `outside` a notebook."""
    return _SHELL if outside else _NOTEBOOK
