"""`get_ipython()` as twin code sees it: `%run` walks the file, everything else is unknown."""

from __future__ import annotations

import os
import shlex
from typing import Any

from .state import ShadowState
from .unknown import UNKNOWN, Unknown


class Shell:
    """What magics and `!` lines are translated to calls of."""

    def __init__(self, walk: ShadowState) -> None:
        self._walk = walk

    def itself(self) -> Shell:
        return self

    def run_line_magic(self, name: str, line: Any, *options: Any, **more: Any) -> Any:
        if name != "run" or type(line) is Unknown:
            return UNKNOWN
        try:
            words = shlex.split(line)
        except ValueError:
            return UNKNOWN
        inside = "-i" in words
        files = [w for w in words if w.endswith(".py")]
        source = self._walk.program.source(os.path.abspath(files[0])) if files else None
        if source is not None:
            names = self._walk.globals if inside else {"__name__": "__main__"}
            self._walk.execute(source, names)
            self._walk.globals.update(names)
        return UNKNOWN

    def run_cell_magic(self, *arguments: Any) -> Any:
        return UNKNOWN  # the body is a source of its own

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return UNKNOWN
