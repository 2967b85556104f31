"""What the knowledge folders say, read without importing them: their modules may import torch."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from ..knowledge.entry import Entry, entries, one_line, unusable
from ..render.texts import Document, load, read

UNKNOWN = "unknown"


@dataclass(frozen=True)
class Cause:
    """A knowledge folder as text: its messages, its example's facts and its documents."""

    name: str
    folder: Path

    @cached_property
    def patterns(self) -> tuple[str, ...]:
        found = self._constants.get("PATTERNS", ())
        return tuple(p for p in found if isinstance(p, str))

    @cached_property
    def messages(self) -> Mapping[str, str]:
        return dict(self._constants.get("MESSAGES", {}))

    @cached_property
    def example(self) -> Mapping[str, str]:
        return dict(self._constants.get("EXAMPLE", {}))

    @cached_property
    def documents(self) -> Mapping[str, Document]:
        """The texts by language."""
        return {language: read(text) for language, text in load(self.folder).items()}

    def document(self, language: str) -> Document:
        """The text in `language`, else in English."""
        return self.documents.get(language) or self.documents["en"]

    @cached_property
    def _constants(self) -> Mapping[str, Any]:
        path = self.folder / "diagnose.py"
        return constants(path.read_text("utf-8")) if path.exists() else {}


def causes(extra: tuple[str, ...] = ()) -> Mapping[str, Cause]:
    """Every cause by name: built in, from installed packages, and from the folders `extra`."""
    return _of(tuple(entries(extra).values()))[0]


def left_out(extra: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The folders of one's own that cannot be used: a line each, with the reason."""
    return (*unusable(extra), *_of(tuple(entries(extra).values()))[1])


@lru_cache(maxsize=4)
def _of(known: tuple[Entry, ...]) -> tuple[Mapping[str, Cause], tuple[str, ...]]:
    found, trouble = {}, []
    for entry in known:
        cause = Cause(entry.name, entry.folder)
        try:
            if not entry.built_in:
                cause.documents  # noqa: B018
        except Exception as error:
            trouble.append(f"{entry.folder} is left out: {one_line(error)}")
            continue
        if entry.name != UNKNOWN:
            found[entry.name] = cause
    return found, tuple(trouble)


def constants(source: str) -> dict[str, Any]:
    """The constants that a module assigns at its top level, as far as they are written out."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return {}
    return {name: _value(node) for name, node in _assigned(tree.body)}


def _assigned(body: Iterable[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    for statement in body:
        if isinstance(statement, ast.Assign):
            targets, value = statement.targets, statement.value
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            targets, value = [statement.target], statement.value
        else:
            continue
        yield from ((t.id, value) for t in targets if isinstance(t, ast.Name))


def _value(node: ast.expr) -> Any:
    """The value, or of a computed one the strings that are written in it."""
    try:
        return ast.literal_eval(node)
    except ValueError:
        return tuple(n.value for n in ast.walk(node) if isinstance(n, ast.Constant))
