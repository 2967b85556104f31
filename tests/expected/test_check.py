"""What a watched notebook gives: what was observed, and rewrites that were tried."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import takewhile
from typing import Any

import pytest
from expected.frozen import Case, Compare, ran
from sessions import run_plainly


@pytest.mark.one_in(10)
def test_check_mode(notebook: Case, as_expected: Compare) -> None:
    as_expected(notebook, "check")


@pytest.mark.one_in(10)
def test_what_is_verified_is_right(notebook: Case) -> None:
    """A rewrite that was verified gives what the intended program gives."""
    if notebook.family == "causes":  # tests/knowledge/test_cases.py
        return
    for rewrite in verified(notebook):
        expressions = notebook.intended[1]
        cells = dict(enumerate(notebook.cells, 1))
        cells |= {edit["cell"]: edit["new_source"] for edit in rewrite["edits"]}
        found = run_plainly(tuple(cells.values()), expressions)
        assert found.agrees(run_plainly(*notebook.intended)), rewrite["title"]


def verified(notebook: Case) -> Iterator[Mapping[str, Any]]:
    """The rewrites said to be verified: as the program stands, so where one that differs goes
    before them, the program as it stands is not the intended one."""
    for report in ran(notebook, "check").reports:
        before = takewhile(lambda r: r["outcome"] != "differs", report.told["rewrites"])
        yield from (rewrite for rewrite in before if rewrite["outcome"] == "verified")


def test_nothing_is_left_over(none_left_over: Callable[[str], None]) -> None:
    none_left_over("check")
