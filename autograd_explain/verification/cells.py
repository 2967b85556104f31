"""Running recorded cells the way IPython does, in a process that may not touch the session."""

from __future__ import annotations
import __future__ as future

import ast
import linecache
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import ModuleType, TracebackType
from typing import Any

from ..model import Edit
from ..program import Program, Source
from ..program_index import index_of

_AWAIT = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
_FUTURE = 0
for _name in future.all_feature_names:
    _FUTURE |= getattr(future, _name).compiler_flag


#: The number of a program outside a notebook, a file, which has none.
SCRIPT = 0


@dataclass(frozen=True)
class Cell:
    """One recorded run of a cell: its text as typed and the file name its code had."""

    number: int
    text: str
    filename: str


def cells_of(program: Program, last: int) -> tuple[Cell, ...]:
    """The runs up to In[last], oldest first.  A run that a magic compiled in parts is one cell;
    of several with one number the last counts, one of IPython's history before any other."""
    if last == SCRIPT:
        files = (s for s in index_of(program).runs if s.cell is None)
        return tuple(Cell(SCRIPT, s.text, s.filename) for s in files)
    runs: dict[int, Source] = {}
    for source in index_of(program).runs:
        if source.cell is None:
            continue
        known = runs.setdefault(source.cell, source)
        other = source.text != known.text
        if source.history > known.history or (other and source.history == known.history):
            runs[source.cell] = source
    found = {number: Cell(number, s.text, s.filename) for number, s in runs.items()}
    cells = []
    for cell in found.values():
        cells.append(cell)
        if cell.number == last:
            return tuple(cells)
    return ()


def told_apart(program: Program, last: int) -> bool:
    """Whether the runs up to In[last] can be put together again: cells that ran outside IPython's
    history one after another share a number, and only one of them would be replayed."""
    texts: dict[int, set[str]] = {}
    for source in index_of(program).runs:
        if source.cell is not None and source.cell <= last:
            texts.setdefault(source.cell, set()).add("" if source.history else source.text)
    return all("" in found or len(found) == 1 for found in texts.values())


def edited(cells: Iterable[Cell], edits: Iterable[Edit]) -> tuple[Cell, ...]:
    """The cells with the edits applied."""
    new = {e.cell or e.file: e.new_source for e in edits}
    return tuple(Cell(c.number, new.get(c.number or c.filename, c.text), c.filename) for c in cells)


def python_of(text: str) -> str:
    """A cell's text as Python: magics and `!` lines become calls of `get_ipython()`."""
    try:
        ast.parse(text)
    except SyntaxError:
        from IPython.core.inputtransformer2 import TransformerManager

        manager: Any = TransformerManager  # untyped in IPython 7
        return str(manager().transform_cell(text))
    return text


class Runner:
    """Executes cells in one namespace."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        self.namespace = namespace
        self.cell: Cell | None = None
        self._flags = _AWAIT

    def run(self, cell: Cell) -> None:
        """Execute a cell; what it raises goes through."""
        self.cell = cell
        self.execute(cell.text, cell.filename)

    def execute(self, text: str, filename: str) -> object:
        """Execute source as typed; the value of its last expression."""
        python = python_of(text)
        linecache.cache[filename] = (len(python), None, python.splitlines(True), filename)
        tree = ast.parse(python, filename)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        code = compile(tree, filename, "exec", self._flags, True)
        self._flags |= code.co_flags & _FUTURE  # `from __future__` lasts for the session
        self._execute(code)
        if not isinstance(last, ast.Expr):
            return None
        shown = ast.Expression(last.value)
        value = self._execute(compile(shown, filename, "eval", self._flags, True))
        if value is not None:
            self.namespace["_"] = value
        return value

    def _execute(self, code: Any) -> Any:
        if code.co_flags & 0x80:  # inspect.CO_COROUTINE: the cell awaits something
            import asyncio

            return asyncio.run(eval(code, self.namespace))
        return eval(code, self.namespace)


def new_main() -> dict[str, Any]:
    """The namespace of a fresh `__main__`, in which a session replayed from the start runs."""
    module = ModuleType("__main__")
    module.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = module
    return module.__dict__


@dataclass(frozen=True)
class Failure:
    """An error of a replay: its text and the innermost line in a cell."""

    type: str
    text: str
    cell: int | None
    line: int | None

    @property
    def of_memory(self) -> bool:
        """Whether there was no memory to be had."""
        return self.type.endswith("MemoryError") or "Cannot allocate memory" in self.text

    @property
    def of_sandbox(self) -> bool:
        """Whether the kernel has refused something; it refuses nothing to a program outside."""
        return "Operation not permitted" in self.text

    @property
    def short(self) -> str:
        line = self.text.strip().splitlines()
        first = f"{self.type}: {line[0]}" if line else self.type
        return first if len(first) <= 160 else first[:159] + "…"


def failure_of(error: BaseException, cell: Cell | None, names: Mapping[str, int]) -> Failure:
    """`names` maps the file names of cells to their numbers."""
    number, line = (None if cell is None else cell.number), None
    for frame, at in _frames(error.__traceback__):
        if frame in names:
            number, line = names[frame], at
    return Failure(type(error).__name__, str(error), number, line)


def _frames(traceback: TracebackType | None) -> Iterable[tuple[str, int]]:
    while traceback is not None:
        yield traceback.tb_frame.f_code.co_filename, traceback.tb_lineno
        traceback = traceback.tb_next
