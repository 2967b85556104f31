"""What of a very long source is left out of work that takes time for every line.

A statement at the top level of a source with thousands of lines is set aside where no chain of
names joins it to the line that failed, to a function that was running or to a shorter source.
Such a statement cannot be what went wrong, apart from what it does to random numbers or switches;
statements that only call something (`torch.manual_seed(0)`) give no name a value and stay.
"""

from __future__ import annotations

import ast
import re
import unicodedata
from collections.abc import Iterator, Sequence

from .program import CLASSES_AND_FUNCTIONS, Program, Source, own_nodes
from .program_index import index_of

_LONG = 1500  #: lines; LibCST takes 0.2 ms for each, the twin of a cell as much
_WORD = re.compile(r"[^\W\d]\w*")
_Words = frozenset[str]


def set_aside(program: Program, source: Source) -> tuple[tuple[int, int], ...]:
    """First and last lines (of `source.python`) of the runs of statements that are set aside; ()
    where the source is short, or nothing tells what the program is asked about."""
    if len(source.python_lines) <= _LONG:
        return ()
    key = set_aside, source
    if key not in program.derived:
        used = _used(program.origin)
        program.derived[key] = () if used is None else tuple(_runs(source, used))
    found: tuple[tuple[int, int], ...] = program.derived[key]
    return found


def _runs(source: Source, used: _Words) -> Iterator[tuple[int, int]]:
    """Neighbours as one, each on lines of its own."""
    statements = source.tree.body
    given = _given(statements)
    first = last = 0
    for number, statement in enumerate(statements):
        start, end = _lines(statement)
        words = _words(source, statement) & given
        after = statements[number + 1 : number + 2]
        alone = start > (_lines(statements[number - 1])[1] if number else 0)
        alone = alone and all(_lines(s)[0] > end for s in after)
        if alone and words and not words & used:
            first, last = first or start, end
        elif first:
            yield first, last
            first = 0
    if first:
        yield first, last


def _used(program: Program) -> _Words | None:
    """The names that are joined to what the program is asked about."""
    if _Words not in program.derived:
        program.derived[_Words] = _joined(program) if program.stops else None
    found: _Words | None = program.derived[_Words]
    return found


def _joined(program: Program) -> _Words:
    index = index_of(program)
    sources = (*index.cells, *index.files)
    long = [s for s in sources if len(s.python_lines) > _LONG]
    found = {word for s in sources if s not in long for word in s.words}
    for code in program.running:
        found.update(getattr(code, "co_qualname", code.co_name).split("."))
    mentioned: dict[str, list[_Words]] = {}
    for source in long:
        given = _given(source.tree.body)
        stops = [line for name, line in program.stops if name == source.filename]
        for statement in source.tree.body:
            words = _words(source, statement) & given
            start, end = _lines(statement)
            if any(start <= line <= end for line in stops):
                found |= words
            for word in words:
                mentioned.setdefault(word, []).append(words)
    pending = [word for word in mentioned if word in found]
    while pending:
        for words in mentioned.pop(pending.pop(), ()):
            pending += words - found
            found |= words
    return frozenset(found)


def _given(statements: Sequence[ast.stmt]) -> _Words:
    """The names that get a value at the top level, those of imports apart: all use these."""
    found: set[str] = set()
    for node in own_nodes(ast.Module(body=[*statements], type_ignores=[])):
        if isinstance(node, CLASSES_AND_FUNCTIONS):
            found.add(node.name)
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
    return frozenset(found)


def _words(source: Source, statement: ast.stmt) -> _Words:
    first, last = _lines(statement)
    text = "\n".join(source.python_lines[first - 1 : last])
    return frozenset(_WORD.findall(unicodedata.normalize("NFKC", text)))


def _lines(statement: ast.stmt) -> tuple[int, int]:
    """The first line, that of a decorator included, and the last one."""
    decorators = getattr(statement, "decorator_list", [])
    first = min([statement.lineno, *(d.lineno for d in decorators)])
    return first, statement.end_lineno or statement.lineno
