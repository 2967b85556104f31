"""Somebody's candidates: what is verified is right.

All of them: `python tests/verification/candidates.py`.
"""

from __future__ import annotations

import zlib

import pytest

from verification.candidates import PLACES, Candidate, candidates, judge


def few() -> list[Candidate]:
    """Of each kind the first."""
    found: dict[str, Candidate] = {}
    for candidate in candidates():
        found.setdefault(candidate.kind, candidate)
    return [*found.values()]


@pytest.mark.parametrize("candidate", few(), ids=lambda c: f"{c.case.name}-{c.kind}")
def test_what_is_verified_is_right(candidate: Candidate) -> None:
    place = PLACES[zlib.crc32(candidate.text.encode()) % len(PLACES)]
    row = judge(candidate, place)
    assert not row.false
    assert row.outcome != "verified" or candidate.kind not in ("failing", "syntax", "as it is")
