"""Functions of earlier cells and of files edited where they live: what made them cannot run again.

A cell that downloads, writes or trains for an hour is not replayed, and yet most repairs belong
into a function or a class that an early cell or a module of the user's defines.  Where nothing but
bodies of functions becomes another, the functions that live are given the new code, and the failing
cell runs from the state that was there before it.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import CodeType

from ..model import Edit
from .alive import Alive
from .cells import Cell, python_of

_MAKERS = frozenset({"__init__", "__new__", "__post_init__"})


@dataclass(frozen=True)
class Redefinition:
    """A text that defines functions which live, as Python compiled it, and what it is to become."""

    filename: str
    old: str
    new: str


def bodies_alone(edits: Iterable[Edit]) -> bool:
    """Whether nothing but bodies of functions changes.

    A constructor's are to be the only ones: what it has made lives on as it is, so that an edit of
    it shows in the cell that makes such objects, and together with others would be tried in part.
    """
    texts = [(e.old_source, e.new_source) for e in edits]
    try:
        return any(
            all(_outline(old, kept) == _outline(new, kept) for old, new in texts)
            for kept in (_is_maker, _is_no_maker)
        )
    except (SyntaxError, ValueError):
        return False


def redefinitions(
    edits: Iterable[Edit], run: Iterable[Cell], earlier: Iterable[Cell]
) -> tuple[Redefinition, ...]:
    """Those of the edits that change other texts than the cells which are `run`."""
    numbers = {cell.number for cell in run}
    names = {cell.number: cell.filename for cell in earlier}
    found = []
    for edit in edits:
        if edit.file is not None or edit.cell not in numbers:
            name = edit.file or names.get(edit.cell or 0, "")
            texts = edit.old_source, edit.new_source
            old, new = texts if edit.file is not None else map(_compiled, texts)
            found.append(Redefinition(name, old, new))
    return tuple(found)


def redefine(changes: Iterable[Redefinition], alive: Alive) -> None:
    """Give the functions that live in this process their new code."""
    for change in changes:
        new = _new_code(change)
        for function in alive.functions_of(change.filename):
            code = new.get(_key(function.__code__))
            if code is not None and code.co_freevars == function.__code__.co_freevars:
                function.__code__ = code
        lines = change.new.splitlines(True)
        linecache.cache[change.filename] = (len(change.new), None, lines, change.filename)


def _compiled(text: str) -> str:
    """A cell as IPython compiles it, without the empty lines above the first."""
    python = python_of(text)
    return python[len(python) - len(python.lstrip("\n")) :]


_Key = tuple[str, int]


def _new_code(change: Redefinition) -> dict[_Key, CodeType]:
    """The new code of what a function's old code is called, and where it begins."""
    old, new = (
        compile(text, change.filename, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, True)
        for text in (change.old, change.new)
    )
    return {_key(a): b for a, b in _pairs(old, new)}


def _pairs(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    yield old, new
    first, second = ([c for c in code.co_consts if isinstance(c, CodeType)] for code in (old, new))
    if [c.co_name for c in first] == [c.co_name for c in second]:
        for pair in zip(first, second, strict=True):
            yield from _pairs(*pair)


def _key(code: CodeType) -> _Key:
    return code.co_name, code.co_firstlineno


def _is_maker(name: str) -> bool:
    return name in _MAKERS


def _is_no_maker(name: str) -> bool:
    return name not in _MAKERS


def _outline(text: str, kept: Callable[[str], bool]) -> str:
    """A text without the bodies of its functions, but for those whose names are `kept`."""
    return ast.dump(_WithoutBodies(kept).visit(ast.parse(python_of(text))))


class _WithoutBodies(ast.NodeTransformer):
    def __init__(self, kept: Callable[[str], bool]) -> None:
        self._kept = kept

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        if not self._kept(node.name):
            node.body = []
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AsyncFunctionDef:
        node.body = []
        return node
