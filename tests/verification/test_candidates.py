"""Somebody's candidates: what is verified is right.

All of them: `python tests/verification/candidates.py`.
"""

from __future__ import annotations

import zlib
from functools import cache

import pytest

from verification.candidates import KINDS, PLACES, Candidate, candidates, judge


@cache
def few() -> dict[str, Candidate]:
    """Of each kind the first."""
    found: dict[str, Candidate] = {}
    for candidate in candidates():
        found.setdefault(candidate.kind, candidate)
    return found


def test_there_is_one_of_each_kind() -> None:
    assert few().keys() == set(KINDS)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_verified_is_right(kind: str) -> None:
    candidate = few()[kind]
    place = PLACES[zlib.crc32(candidate.text.encode()) % len(PLACES)]
    row = judge(candidate, place)
    assert not row.false
    assert row.outcome != "verified" or candidate.kind not in ("failing", "syntax", "as it is")
