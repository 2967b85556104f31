"""The cells that ran, as they ran: number, text as typed, the Python compiled from it, file name.

Only text is kept, of the last `MAX_CELLS` runs.  IPython compiles a cell under a name of its own
making (7.34 `<ipython-input-3-…>`, ipykernel a hash of the text); a cell magic either runs its
body through `run_cell` again (%%capture) or compiles it under a made-up name (%%time).
"""

from __future__ import annotations

import linecache
import re
import threading
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import IPython

from ..incident import LiveFrame, frames_of, running
from ..model import lines_of
from ..program import Program, Source
from .compiled import TIMEIT, settle

MAX_CELLS = 500

#: Names under which IPython's own cell magics compile their body (%%prun's is `<string>`, which
#: proves nothing: dataclasses use it too).
COMPILED_AS = {"time": ("<timed exec>", "<timed eval>"), "timeit": (TIMEIT,)}
#: Magics of ours that are turned into a line of the cell instead (see `transform`).
INLINE = ("autograd_check",)
_MAGIC = re.compile(r"\s*%%(\w+)(?!\w*\?)")
# Some IPython 9 moves the prompt number on before `pre_run_cell`, others after the cell; a wrong
# guess is corrected when the first cell ends.
_COUNTS_FIRST = IPython.version_info[0] >= 9


@dataclass
class Run:
    """One run of a cell, or of a part of a cell that a magic runs as a cell of its own.

    `earlier`: it was over before the extension was loaded.
    """

    number: int  #: 0 for a program that is no notebook
    text: str
    raw: str
    before: int = 0
    compile_number: int = 0
    history: bool = True
    cell_id: str | None = None
    python: str | None = None
    started: float = 0.0
    seconds: float | None = None
    success: bool | None = None
    sources: tuple[Source, ...] | None = None
    possible: tuple[Source, ...] = ()
    earlier: bool = False


@dataclass(frozen=True)
class Layers:
    """A fragment's cell magics, outermost first, and how many lines they take."""

    magics: tuple[str, ...]
    skipped: int


class Cells:
    """The runs of this session; those before the extension was loaded come from the history."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._runs: deque[Run] = deque(maxlen=MAX_CELLS)
        self._stacks: dict[int, list[Run]] = {}
        self._earlier: tuple[Source, ...] | None = None
        self._first: int | None = None
        self._counts_first = _COUNTS_FIRST

    @property
    def running(self) -> Run | None:
        """The innermost run of this thread (a subshell's cells run in a thread of their own)."""
        stack = self._stack()
        return stack[-1] if stack else None

    @property
    def outermost(self) -> Run | None:
        """The cell that the user ran, in this thread."""
        stack = self._stack()
        return stack[0] if stack else None

    def start(self, info: Any) -> Run | None:
        """A cell begins; None for a blank one, which IPython does not run."""
        if not info.raw_cell.strip():
            return None
        run = self._new_run(info, self._number_at_start(info))
        python = getattr(info, "transformed_cell", None)
        run.python = python if isinstance(python, str) else None
        self._stack().append(run)
        self._runs.append(run)
        return run

    def finish(self, result: Any) -> Run | None:
        """A cell has ended; gives its run, and makes one where its beginning was not seen."""
        stack = self._stack()
        if result is None:  # a cancelled task
            return stack.pop() if stack else None
        info = result.info
        if not info.raw_cell.strip():
            return None
        at = next((i for i in reversed(range(len(stack))) if stack[i].raw == info.raw_cell), None)
        if at is None:
            run = self._new_run(info, self._number_at_end(result))
            self._runs.append(run)
        else:
            run = stack[at]
            run.seconds = time.monotonic() - run.started
            del stack[at:]
        self._correct(run, result)
        run.success = bool(result.success)
        self._resolve(run)
        return run

    def program(self) -> Program:
        """Everything that ran, oldest first, the running cells included."""
        return self.settled(())[0]

    def settled(self, frames: Iterable[LiveFrame]) -> tuple[Program, tuple[LiveFrame, ...]]:
        """The program, and the frames with file names that belong to one cell each."""
        found = list(self._before_loading())
        possible: list[Source] = []
        for run in self._runs:
            found.extend(self._resolve(run))
            possible.extend(run.possible)
        sources, settled = settle(found[-MAX_CELLS:], possible, frames)
        return Program(sources, self._shell.user_ns, *running(settled)), settled

    def failed_before_loading(self, error: BaseException) -> Run | None:
        """The run of the cell that raised an error before the extension was loaded."""
        cells = {source.filename: source for source in self._before_loading()}
        frames = frames_of(error.__traceback__)
        source = next((cells[f.filename] for f in frames if f.filename in cells), None)
        if source is None or source.cell is None:
            return None
        return Run(source.cell, source.text, source.text, success=False, earlier=True)

    def bound_since(self, run: Run) -> frozenset[str]:
        """The names of a run's program that cells after it, before the loading, have bound anew."""
        used: set[str] = set()
        bound: set[str] = set()
        for cell in self._before_loading():
            if cell.cell is not None and cell.cell <= run.number:
                used |= cell.words
            else:
                bound |= cell.bound
        return frozenset(used & bound)

    @property
    def runs(self) -> tuple[Run, ...]:
        """The runs that were seen, oldest first."""
        return tuple(self._runs)

    def lines_before(self, run: Run, part: str) -> int:
        """How many lines of the cell as typed stand before a part of it."""
        at = run.text.rstrip().rfind(part.rstrip())
        return run.text.count("\n", 0, at) if at >= 0 else 0

    def add_part(self, run: Run, python: str, filename: str) -> None:
        """A part of the cell was compiled by a magic of ours, its lines numbered as typed."""
        part = Source(run.number, None, run.text, python, filename, history=run.history)
        run.sources = (*self._resolve(run), part)

    # A run's numbers

    def _number_at_start(self, info: Any) -> int:
        number = int(self._shell.execution_count)
        return number - 1 if self._counts_first and info.store_history else number

    def _number_at_end(self, result: Any) -> int:
        if result.execution_count is not None:
            return int(result.execution_count)
        number = int(self._shell.execution_count)
        return number - 1 if result.info.store_history else number

    def _new_run(self, info: Any, number: int) -> Run:
        raw = info.raw_cell
        self._first = number if self._first is None else self._first
        run = Run(
            number=number,
            text=raw,
            raw=raw,
            compile_number=number,
            history=bool(info.store_history),
            cell_id=getattr(info, "cell_id", None),
            started=time.monotonic(),
        )
        outer = self.running
        if outer is not None:
            at = outer.text.rstrip().rfind(raw.rstrip())
            if at >= 0:
                run.text, run.before = outer.text, outer.text.count("\n", 0, at)
                run.number = outer.number
            run.compile_number = int(self._shell.execution_count)
        return run

    def _stack(self) -> list[Run]:
        return self._stacks.setdefault(threading.get_ident(), [])

    def _correct(self, run: Run, result: Any) -> None:
        """IPython tells the number at the end."""
        number = result.execution_count
        nested = self.running is not None
        if run.history and not nested and number is not None and number != run.number:
            self._counts_first = not self._counts_first
            run.number = run.compile_number = number
            run.sources = None

    # A run's source

    def _resolve(self, run: Run) -> tuple[Source, ...]:
        if run.sources is None:
            run.sources = tuple(self._sources(run))
        return run.sources

    def _sources(self, run: Run) -> list[Source]:
        layers = peel(run.raw)
        executing = [m for m in layers.magics if m not in INLINE]
        if not executing:
            python = self._python(run)
            name = self._shell.compile.get_code_name(run.raw, python, run.compile_number)
            return [self._source(run, python, name, run.before + blank_lines(run.raw))]
        body, skipped = _body(run.raw, executing[-1])
        python = self._transform(body)
        offset = run.before + skipped + blank_lines(body)
        names = COMPILED_AS.get(executing[-1], ())
        if not names:
            run.possible = (self._source(run, python, "", offset),)
        return [self._source(run, python, name, offset) for name in names]

    def _source(self, run: Run, python: str, name: str, offset: int) -> Source:
        return Source(run.number, None, run.text, python, name, offset, run.history)

    def _python(self, run: Run) -> str:
        if run.python is None:
            run.python = self._from_history(run) or self._transform(run.raw)
        return run.python

    def _from_history(self, run: Run) -> str | None:
        """What IPython made of the cell; its history keeps it without the last line ends."""
        manager = self._shell.history_manager
        parsed = getattr(manager, "input_hist_parsed", ())
        raws = getattr(manager, "input_hist_raw", ())
        if not run.history or not run.number < len(parsed) or run.number >= len(raws):
            return None
        if raws[run.number].rstrip("\n") != run.raw.rstrip("\n"):
            return None
        ends = len(run.raw) - len(run.raw.rstrip("\n"))
        return str(parsed[run.number]) + "\n" * max(ends, 1)

    def _transform(self, raw: str) -> str:
        try:
            return str(self._shell.transform_cell(raw))
        except SyntaxError:
            return raw

    def _before_loading(self) -> tuple[Source, ...]:
        if self._earlier is None:
            self._earlier = tuple(_history_sources(self._shell, self._first))
        return self._earlier


def peel(raw: str) -> Layers:
    """The cell magics at the head of a fragment."""
    lines = lines_of(raw)
    magics: list[str] = []
    at = skipped = 0
    while at < len(lines):
        found = _MAGIC.match(lines[at])
        if found:
            magics.append(found[1])
            skipped = at + 1
        elif lines[at].strip():
            break
        at += 1
    return Layers(tuple(magics), skipped)


def _body(raw: str, magic: str) -> tuple[str, int]:
    """What the innermost magic of this name runs, and the number of lines before it."""
    lines = lines_of(raw, keepends=True)
    heads = [i for i in range(peel(raw).skipped) if (m := _MAGIC.match(lines[i])) and m[1] == magic]
    return "".join(lines[heads[-1] + 1 :]), heads[-1] + 1


def blank_lines(raw: str) -> int:
    """Leading blank lines, which IPython strips before it compiles."""
    lines = lines_of(raw)
    return next((i for i, line in enumerate(lines) if line.strip()), 0)


def _history_sources(shell: Any, first: int | None) -> list[Source]:
    """The cells before the first that was seen, their file names found by their content."""
    manager = shell.history_manager
    raws = list(getattr(manager, "input_hist_raw", ()))
    parsed = list(getattr(manager, "input_hist_parsed", ()))
    names = _compiled_names(shell)
    found = []
    end = min(len(raws), len(parsed), len(raws) if first is None else first)
    for number in range(max(1, end - MAX_CELLS), end):
        python = parsed[number] + "\n"
        name = names.get(python.strip())
        if name and not any(m not in INLINE for m in peel(raws[number]).magics):
            offset = blank_lines(raws[number])
            found.append(Source(number, None, raws[number], python, name, offset))
    return found


def _compiled_names(shell: Any) -> dict[str, str]:
    """Text of a compiled cell -> the name it was compiled under."""
    known = getattr(shell.compile, "_filename_map", None)
    found = {}
    for name, entry in list(linecache.cache.items()):
        cell = name in known if known else "ipython-input" in name or "ipykernel_" in name
        if cell and len(entry) == 4:
            found["".join(entry[2]).strip()] = name
    return found
