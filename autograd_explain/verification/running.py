"""What the functions that are running call the tensors that no name of the session leads to."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping, Set
from types import FrameType
from typing import Any

import torch

from ..program import is_library
from . import cells
from .objects import spellings_in


class RunningFunctions:
    """The program's functions that are running.  `files` are the file names of its cells."""

    def __init__(self, files: Collection[str] = ()) -> None:
        self._files = dict.fromkeys(files, True)

    def names_of(self, wanted: Set[int]) -> dict[int, str]:
        """Names of tensors by identity, those of the innermost function first; else those that the
        library which runs them has for modules."""
        found = self._spellings(sys._getframe(1), wanted)
        return {at: names[0] for at, names in found.items()}

    def spellings(self, wanted: Set[int]) -> dict[int, list[str]]:
        """As `names_of`, of these tensors all names, the best first."""
        found = self._spellings(sys._getframe(1), wanted)
        return {at: names for at, names in found.items() if at in wanted}

    def _spellings(self, frame: FrameType, wanted: Set[int]) -> dict[int, list[str]]:
        found: dict[int, list[str]] = {}
        frames = list(_frames(frame))
        for inside in filter(self._is_function, frames):
            _add(found, _locals(inside))
        for around in frames:
            if wanted <= found.keys():
                break
            held = _locals(around).items()
            _add(found, {n: v for n, v in held if isinstance(v, torch.nn.Module)})
        return found

    def _is_function(self, frame: FrameType) -> bool:
        """Whether a function of the program's own runs there."""
        code = frame.f_code
        return code.co_name != "<module>" and self._is_users(code.co_filename)

    def _is_users(self, filename: str) -> bool:
        """Whether a file is the program's own."""
        if filename not in self._files:
            own = filename.endswith(".py") and not is_library(filename)
            self._files[filename] = own
        return self._files[filename]


def _add(found: dict[int, list[str]], space: Mapping[str, Any]) -> None:
    for at, names in spellings_in(space).items():
        found.setdefault(at, []).extend(names)


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None and frame.f_code.co_filename != cells.__file__:
        yield frame
        frame = frame.f_back


def _locals(frame: FrameType) -> Mapping[str, Any]:
    return frame.f_locals
