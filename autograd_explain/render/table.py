"""A table whose rows are computed: the row of placeholders in the text, once for each mapping.

`table.py` of the knowledge folder runs torch, so it runs only when the table is shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from markdown_it.token import Token

from .fill import fill_tokens, placeholders
from .labels import source
from .texts import Passage

_WORDS = ("yes", "no")


def with_table(
    passage: Passage, folder: Path | None, language: str, facts: Mapping[str, str]
) -> Passage:
    """The passage with the rows of the folder's table and the facts filled in."""
    tokens = passage.tokens
    if _has_table(tokens):
        rows = [_translated(row, language) for row in _rows(folder)]
        tokens = tuple(_expanded(tokens, rows))
    return Passage(tuple(fill_tokens(tokens, facts)), passage.inline)


def columns_of(folder: Path) -> frozenset[str]:
    """The placeholders that the folder's table fills."""
    return frozenset(name for row in _rows(folder) for name in row)


@cache
def _rows(folder: Path | None) -> tuple[Mapping[str, str], ...]:
    from ..knowledge.entry import Entry

    return () if folder is None else Entry(folder.name, folder).rows


def _has_table(tokens: Sequence[Token]) -> bool:
    return any(token.type == "table_open" for token in tokens) and bool(placeholders(tokens))


def _translated(row: Mapping[str, str], language: str) -> dict[str, str]:
    return {k: source(v, language) if v in _WORDS else v for k, v in row.items()}


def _expanded(tokens: Sequence[Token], rows: Sequence[Mapping[str, str]]) -> Iterator[Token]:
    start = 0
    for first, last in _table_rows(tokens):
        yield from tokens[start:first]
        start = last
        row = tokens[first:last]
        if not placeholders(row):
            yield from row
        for facts in rows if placeholders(row) else ():
            yield from fill_tokens(row, facts)
    yield from tokens[start:]


def _table_rows(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Where each table row begins and ends (exclusive)."""
    first = 0
    for number, token in enumerate(tokens):
        if token.type == "tr_open":
            first = number
        elif token.type == "tr_close":
            yield first, number + 1
