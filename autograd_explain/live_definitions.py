"""Which of the user's classes and functions live, of several that were defined under one name.

A notebook defines a class, and later defines it again or imports it from a file: the older text is
still there, and says nothing of what runs now.
"""

from __future__ import annotations

import functools
import gc
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import CodeType, FunctionType, MethodType
from typing import Any, NamedTuple

from .isolation.type_checks import bases, class_table, is_a
from .program import Source, first_line

#: Blocks of memory that Python has; where there are more, looking at every object takes a second.
_MOST = 10_000_000
_DEEPEST = 100  #: decorators on one function; a `__wrapped__` may lead back to itself
#: Exactly these: a subclass may say with code of the user's what it holds.
_HOLDERS = (MethodType, staticmethod, classmethod, functools.partial)


class Defined(NamedTuple):
    """A definition at the top level of a cell or file."""

    cell: int | None
    file: str | None
    name: str


#: The source that a code object was compiled from.
SourceOf = Callable[[CodeType], Source | None]


def outlived(
    defined: Iterable[Defined],
    names: Mapping[str, Any],
    running: Iterable[CodeType],
    source_of: SourceOf,
) -> frozenset[Defined]:
    """Those of the definitions whose name stands for another of the user's now, and of which
    nothing else lives: no instance, no function kept as a hook, no frame."""
    doubted = {d for d in defined if _is_another(d, _definitions(names.get(d.name), source_of))}
    if not doubted or sys.getallocatedblocks() > _MOST:
        return frozenset()
    alive = {_defined(code, source_of) for code in running}
    module = names.get("__name__")
    for value in (*names.values(), *_living(module if type(module) is str else "__main__")):
        alive |= _definitions(value, source_of)
    return frozenset(doubted - alive)


def _is_another(defined: Defined, now: set[Defined]) -> bool:
    return bool(now) and defined not in now


def _living(module: str) -> Iterator[Any]:
    """Every function of a module that Python holds, and the class of every object.

    Not every class and method: in a circle with themselves, they stay until a collection.
    """
    classes: dict[int, type] = {}  # by identity: a metaclass may hash as it likes
    for value in gc.get_objects():
        kind = type(value)
        if kind is FunctionType:
            name = value.__qualname__
            if type(name) is str and ("<locals>" in name or "." not in name):
                if _is(value.__module__, module):
                    yield value
        elif kind is not type:
            classes[id(kind)] = kind
    # The class of an autograd.Function's node holds that Function.
    functions = (class_table(k).get("_forward_cls") for k in [*classes.values()])
    for kind in (*classes.values(), *(f for f in functions if is_a(f, type))):
        if any(_is(class_table(base).get("__module__"), module) for base in bases(kind)):
            yield kind


def _is(text: Any, wanted: str) -> bool:
    """Whether this is a text, of no class that compares in its own way, and which."""
    return type(text) is str and text == wanted


def code_of(value: Any) -> CodeType | None:
    """The code of a plain or bound function, under decorators that say what they wrap; None where
    they wrap one another, or too many."""
    for _ in range(_DEEPEST):
        kind = type(value)
        if any(kind is holder for holder in _HOLDERS):
            value = value.func if kind is functools.partial else value.__func__
        elif kind is FunctionType and type(inner := _wrapped(value)) is FunctionType:
            value = inner
        else:
            return value.__code__ if kind is FunctionType else None
    return None


def _wrapped(function: FunctionType) -> Any:
    return dict.get(function.__dict__, "__wrapped__")


def _definitions(value: Any, source_of: SourceOf) -> set[Defined]:
    """The user's definitions that a function is of, or a class with its bases."""
    kinds = bases(value) if is_a(value, type) else ()
    codes = [c for kind in kinds for v in class_table(kind).values() if (c := _code_in(v))]
    own = code_of(value)
    return {
        d
        for code in (*codes, *([] if own is None else [own]))
        if (d := _defined(code, source_of)) is not None
    }


def _code_in(value: Any) -> CodeType | None:
    """The code of what a class holds: a method's, a property's."""
    if type(value) is property:
        return code_of(value.fget)
    return code_of(value.func if type(value) is functools.cached_property else value)


def _defined(code: CodeType, source_of: SourceOf) -> Defined | None:
    """The definition at the top level that a code object stands in."""
    source = source_of(code)
    line = code.co_firstlineno
    for node in () if source is None else source.definitions:
        if source is not None and first_line(node) <= line <= (node.end_lineno or line):
            return Defined(source.cell, source.file, node.name)
    return None
