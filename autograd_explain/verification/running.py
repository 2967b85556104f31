"""What the functions that are running call the tensors that no name of the session leads to."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping, Set
from types import FrameType
from typing import Any

import torch

from ..program import is_library
from . import cells
from .objects import names_in, spelled, walk


class RunningFunctions:
    """The program's functions that are running.  `files` are the file names of its cells."""

    def __init__(self, files: Collection[str] = ()) -> None:
        self._files = dict.fromkeys(files, True)

    def names_of(self, wanted: Set[int]) -> dict[int, str]:
        """Names of tensors by identity, those of the innermost function first; else those that the
        library which runs them has for modules."""
        names: dict[int, str] = {}
        frames = list(_frames(sys._getframe(1)))
        for frame in filter(self._is_function, frames):
            names = names_in(_locals(frame)) | names
        for frame in frames:
            if wanted <= names.keys():
                break
            held = _locals(frame).items()
            names = names_in({n: v for n, v in held if isinstance(v, torch.nn.Module)}) | names
        return names

    def spellings(self, wanted: Set[int]) -> dict[str, int]:
        """Every name that the functions have for these, by itself; the innermost one's counts."""
        found: dict[str, int] = {}
        for frame in filter(self._is_function, _frames(sys._getframe(1))):
            held = {spelled(p): id(v) for p, v in walk(_locals(frame)) if id(v) in wanted}
            found = held | found
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


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None and frame.f_code.co_filename != cells.__file__:
        yield frame
        frame = frame.f_back


def _locals(frame: FrameType) -> Mapping[str, Any]:
    return frame.f_locals
