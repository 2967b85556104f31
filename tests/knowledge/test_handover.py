"""What a diagnosis hands over: types to the rewrites, strings to the texts alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from knowledge.played import WITH_CASE, played

import autograd_explain
from autograd_explain.knowledge.entry import Entry, entries
from autograd_explain.model import Finding

PACKAGE = Path(autograd_explain.__file__).parent
WITH_REWRITE = tuple(e for e in entries().values() if e.propose is not None)


@pytest.mark.parametrize("path", sorted(PACKAGE.glob("knowledge/*/rewrite.py")), ids=str)
def test_a_rewrite_reads_no_text(path: Path) -> None:
    """Facts and variants are words for the reader; places and details say what to edit."""
    nodes = ast.walk(ast.parse(path.read_text("utf-8")))
    read = [
        n.lineno for n in nodes if isinstance(n, ast.Attribute) and n.attr in ("facts", "variant")
    ]
    assert read == []


@pytest.mark.parametrize("entry", WITH_REWRITE, ids=lambda e: e.name)
def test_the_rewrites_take_what_the_diagnosis_hands_over(entry: Entry) -> None:
    taken, handed = taken_by(entry), list(handed_by(entry))
    assert taken in (object, *handed) and len(handed) == 1


@pytest.mark.one_in(2)
@pytest.mark.parametrize("entry", WITH_CASE, ids=lambda e: e.name)
def test_the_diagnosis_hands_over_what_it_says(entry: Entry) -> None:
    (said,) = handed_by(entry)
    assert isinstance(played(entry.name).details[entry.name], said)


def taken_by(entry: Entry) -> Any:
    table = get_type_hints(entry._module("rewrite")).get("propose")
    if table is not None:
        return details_of(get_args(table)[0][0])
    assert entry.propose is not None
    return details_of(get_type_hints(entry.propose)["finding"])


def handed_by(entry: Entry) -> Iterator[Any]:
    assert entry.diagnose is not None
    found = get_type_hints(entry.diagnose)["return"]
    for kind in get_args(found):
        if kind is not type(None):
            yield details_of(kind)


def details_of(kind: Any) -> Any:
    """`D` of `Finding[D]`; a plain `Finding` hands over anything."""
    return get_args(kind)[0] if get_origin(kind) is Finding else object
