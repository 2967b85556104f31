"""The injected programs are the same for a seed, and each goes wrong as it should.

What is said about them is in `tests/expected`;
`python tests/injection/measure.py --injected 500 --show` measures more of them.
"""

from __future__ import annotations

from itertools import islice

import pytest
from injection.differences import contradicted
from injection.generator import KINDS, programs
from injection.run import goes_wrong, measure, play


def test_the_programs_are_the_same_for_a_seed():
    first = list(islice(programs(3), 12))
    assert first == list(islice(programs(3), 12))
    assert first != list(islice(programs(4), 12))


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_right_program_works_and_the_wrong_one_does_not(kind):
    for case in islice(programs(1, (kind,)), 4):
        right = play(case.right, case.grads)
        assert not right.error and all(g is not None for g in right.grads)
        assert goes_wrong(case)
        lines = {(c, n): s for c, t in enumerate(case.wrong, 1)
                 for n, s in enumerate(t.splitlines(), 1)}  # fmt: skip
        assert case.guilty <= lines.keys()


def test_finite_differences_tell_right_programs_from_wrong_ones():
    for case in islice(programs(0, ("data",)), 12):
        assert contradicted(case.right, case.grads) == ()
        assert contradicted(case.wrong, case.grads)


def test_writes_through_data_are_never_falsely_verified():
    """`measure.py --kinds data --injected 200` takes more of them."""
    found = [measure(case) for case in islice(programs(0, ("data",)), 5)]
    assert [m.name for m in found if m.false] == []
    assert all(m.named for m in found)
    assert any(m.outcome == "verified" for m in found)
