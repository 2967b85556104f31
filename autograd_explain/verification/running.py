"""What the functions that are running call the tensors that no name of the session leads to."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping, Set
from types import FrameType
from typing import Any

import torch

from ..program import is_library
from . import cells
from .objects import names_in


class RunningFunctions:
    """The program's functions that are running.  `files` are the file names of its cells."""

    def __init__(self, files: Collection[str] = ()) -> None:
        self._files = dict.fromkeys(files, True)

    def names_of(self, wanted: Set[int]) -> dict[int, str]:
        """Names of tensors by identity, those of the innermost function first; else those that the
        library which runs them has for modules."""
        names: dict[int, str] = {}
        frames = list(_frames(sys._getframe(1)))
        for frame in frames:
            code = frame.f_code
            if code.co_name != "<module>" and self._is_users(code.co_filename):
                names = names_in(_locals(frame)) | names
        for frame in frames:
            if wanted <= names.keys():
                break
            held = _locals(frame).items()
            names = names_in({n: v for n, v in held if isinstance(v, torch.nn.Module)}) | names
        return names

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
