"""Bugs injected into correct programs are named and repaired, and nothing false is verified.

The programs are the same for a seed; `pytest tests/injection --injected 500` runs more of them,
`python tests/injection/measure.py --injected 500 --show` tells which ones are missed.
"""

from __future__ import annotations

import time
from itertools import islice

import pytest
from injection.generator import KINDS, programs
from injection.measure import table
from injection.run import goes_wrong, measure, play

#: Runs of the subset end after this, however slow the machine is.
_SECONDS = 100.0


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


def test_injected_bugs_are_named_and_repaired(request, capsys):
    """The bars of the larger runs hold for the subset too; a slow machine runs fewer."""
    asked = request.config.getoption("--injected")
    start, found = time.monotonic(), []
    for case in islice(programs(0), asked or 60):
        found.append(measure(case))
        if not asked and time.monotonic() - start > _SECONDS:
            break
    with capsys.disabled():
        print(f"\n{table(found)}")
    assert [m.name for m in found if m.false] == []
    assert len(found) >= 5
    assert sum(m.named for m in found) >= 0.97 * len(found) - 1
    assert sum(m.repaired for m in found) >= 0.90 * len(found) - 1


def test_writes_that_autograd_does_not_see_are_found(request, capsys):
    asked = request.config.getoption("--injected") // 5
    found = [measure(case) for case in islice(programs(0, ("data",)), asked or 6)]
    with capsys.disabled():
        print(f"\n{table(found)}")
    assert [m.name for m in found if m.false] == []
    assert sum(m.named for m in found) >= 0.9 * len(found) - 1
