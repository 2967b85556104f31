"""Where a call came from, noted at the price of a few pointer reads.

While recording, a site is a tuple of numbers: the operation, then for each of the user's frames its
code object and instruction.  No frame is kept and no line number computed; the line and the
expression follow from the code object when something has to be explained.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from inspect import CO_OPTIMIZED
from types import CodeType, FrameType
from typing import Any

import torch

from ...program import is_installed

#: More of the user's frames than this are not told apart (deep recursion).
MAX_FRAMES = 16
MAX_SITES = 50_000

_LIBRARY, _USER, _STOP, _INSTALLED = 0, 1, 2, 3
_TORCH = os.path.join(os.path.dirname(torch.__file__), "")
# Whatever called these is not the user's program.
_OUTERMOST = (
    "IPython/core/interactiveshell.py",
    "_pytest/python.py",
    "runpy.py",
    "autograd_explain/script/target.py",
)


@dataclass(frozen=True)
class CallFrame:
    """One of the user's frames: its code, the instruction, and the cell that was running."""

    code: CodeType
    instruction: int
    cell: int | None

    def shares_names(self, other: CallFrame) -> bool:
        """Whether both are of one function, or at the top level: IPython compiles the statements of
        a cell one by one."""
        top = not (self.code.co_flags | other.code.co_flags) & CO_OPTIMIZED
        return self.code is other.code or top


@dataclass(frozen=True)
class CallSite:
    """A call: the operation's number and the user's frames, innermost first.

    `below` are the library functions between the innermost user frame and torch, the one that
    called torch first: pairs of file name and function name.
    """

    operation: int
    below: tuple[tuple[str, str], ...]
    steps: tuple[CallFrame, ...]


class CallSites:
    """Every site seen, by number; site 0 is "no line of the user's"."""

    def __init__(self) -> None:
        self.all: list[CallSite] = [CallSite(-1, (), ())]
        self._numbers: dict[Any, int] = {}
        self._verdicts: dict[str, int] = {}
        #: Verdicts by the code's identity, which is cheaper to ask for than the name of its file.
        self._judged: dict[int, int] = {}
        self._held: list[CodeType] = []  # so that none of these identities is used twice
        self._is_user: Callable[[str], bool] = lambda filename: False
        # Code objects by identity: they stay alive here, so an identity is never used twice.
        self._codes: dict[int, CodeType] = {}
        self._cells: dict[int, int | None] = {}
        self._cell: int | None = None
        self._cell_files: frozenset[str] = frozenset()
        #: The frame of the cell's statement that runs, and its code: no user's frame is below.
        self._outermost: FrameType | None = None
        self._outermost_code = 0
        #: Sites in functions that this frame calls, as a loop by hand is one: by the operation,
        #: the function's code and instruction, and the frame's.
        self._near: dict[tuple[int, int, int, int], int] = {}
        #: For each site the innermost code and instruction of an installed package inside it;
        #: None among them where the first call came from none.
        self.insides: dict[int, set[tuple[CodeType, int] | None]] = {}
        #: The names of the code seen last: the user's namespace, or that of their script.
        self.namespace: dict[str, Any] = {}

    def enter(
        self, is_user: Callable[[str], bool], cell: int | None, cell_files: frozenset[str]
    ) -> None:
        """A cell begins: `cell_files` are the names its own code is compiled under."""
        self._is_user = is_user
        self._verdicts.clear()
        self._forget_judged()
        self._cell, self._cell_files = cell, cell_files

    def leave(self) -> None:
        """The cell has ended: its frame is let go."""
        self._outermost = None
        self._near.clear()

    def here(self, frame: FrameType | None, operation: int) -> int:
        """The number of the site whose innermost frame (torch's caller) is `frame`; 0 for none."""
        outer = None if frame is None else frame.f_back
        if frame is None or outer is None or outer is not self._outermost:
            return self._walked(frame, operation)
        near = operation, id(frame.f_code), frame.f_lasti, outer.f_lasti
        try:
            return self._near[near]
        except KeyError:
            number = self._near[near] = self._walked(frame, operation)
            return number

    def _walked(self, frame: FrameType | None, operation: int) -> int:
        """As `here`, from each frame to its caller."""
        first, outermost, judged = frame, self._outermost, self._judged
        inside, depth = None, 0
        key: Any = operation  # a tuple of the key so far, the code and the instruction
        while frame is not None:
            if frame is outermost:
                key = key, self._outermost_code, frame.f_lasti
                break
            code = id(frame.f_code)
            try:
                verdict = judged[code]
            except KeyError:
                verdict = self._judge_code(frame.f_code)
            if verdict == _USER:
                key = key, code, frame.f_lasti
                depth += 1
                if depth == MAX_FRAMES:
                    break
            elif verdict == _STOP:
                break
            elif verdict and inside is None and not depth:
                inside = frame.f_code, frame.f_lasti
            frame = frame.f_back
        try:
            number = self._numbers[key]
        except KeyError:
            number = self._add(first, key)
            self.insides[number] = {inside}
        if inside is not None:
            self.insides[number].add(inside)
        return number

    def _add(self, frame: FrameType | None, key: Any) -> int:
        """A site that was not seen before: walk again, now keeping the code objects."""
        if type(key) is int or len(self.all) > MAX_SITES:
            return 0
        steps: list[CallFrame] = []
        below: list[tuple[str, str]] = []
        last = frame
        while frame is not None and len(steps) < MAX_FRAMES:
            code = frame.f_code
            verdict = self._judge(code.co_filename)
            if verdict == _USER:
                steps.append(CallFrame(self._keep(code), frame.f_lasti, self._cells[id(code)]))
                self.namespace = frame.f_globals
                last = frame
            elif verdict == _STOP:
                self._remember_outermost(last)
                break
            elif not steps:
                below.append((code.co_filename, code.co_name))
            frame = frame.f_back
        operation = key
        while type(operation) is not int:
            operation = operation[0]
        self._numbers[key] = len(self.all)
        self.all.append(CallSite(operation, tuple(below), tuple(steps)))
        return len(self.all) - 1

    def _remember_outermost(self, frame: FrameType | None) -> None:
        """`frame` is the last one of the user's before those that called the program.  A statement
        of the cell's own lives until it has ended, so that a walk may end there."""
        if frame is not None:
            code = frame.f_code
            if not code.co_flags & CO_OPTIMIZED and code.co_filename in self._cell_files:
                self._outermost, self._outermost_code = frame, id(code)
                self._near.clear()

    def _keep(self, code: CodeType) -> CodeType:
        """Hold a code object and remember the cell it belongs to: the one that ran first."""
        if id(code) not in self._codes:
            self._codes[id(code)] = code
            own = code.co_filename in self._cell_files
            self._cells[id(code)] = self._cell if own else None
        return code

    def _judge_code(self, code: CodeType) -> int:
        if len(self._held) > MAX_SITES:
            self._forget_judged()
        self._held.append(code)
        verdict = self._judged[id(code)] = self._judge(code.co_filename)
        return verdict

    def _forget_judged(self) -> None:
        self._judged.clear()
        self._near.clear()
        self._held.clear()

    def _judge(self, filename: str) -> int:
        verdict = self._verdicts.get(filename)
        if verdict is None:
            if self._is_user(filename):
                verdict = _USER
            elif filename.replace("\\", "/").endswith(_OUTERMOST):
                verdict = _STOP
            else:
                apart = is_installed(filename) and not filename.startswith(_TORCH)
                verdict = _INSTALLED if apart else _LIBRARY
            self._verdicts[filename] = verdict
        return verdict
