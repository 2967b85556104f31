"""Places in short: `In[3]`, a file's own name, `train.py:14 step()`."""

from __future__ import annotations

from ..model import Place


def where_of(cell: int | None, file: str | None) -> str:
    """`In[3]` or a file's own name."""
    return f"In[{cell}]" if cell is not None else short_file(file)


def short_file(file: str | None) -> str:
    return "" if file is None else file.replace("\\", "/").rsplit("/", 1)[-1]


def numbered(place: Place) -> str:
    """`In[3]:9`; the file alone where its lines are not those that ran."""
    where = where_of(place.cell, place.file)
    return where if place.changed else f"{where}:{place.line}"


def short_place(place: Place) -> str:
    function = f" {place.function}()" if place.function else ""
    return f"{numbered(place)}{function}"
