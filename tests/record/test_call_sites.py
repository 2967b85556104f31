"""Which line a call came from, whatever ran before and whoever called."""

from __future__ import annotations

import gc
from types import FrameType

from watching import lines, watched

NESTED = """x = torch.zeros(3)
def inner(t):
    t.add_(1)
def outer(t):
    inner(t)
for _ in range(2):
    inner(x)
    outer(x)
def numbers():
    for _ in range(2):
        x.mul_(1)
        yield 1
sum(numbers())
x.zero_()
"""


def test_each_way_to_a_line_is_a_place_of_its_own() -> None:
    recording, _ = watched(NESTED)
    wrote = [w for w in recording.log.wrote if lines(recording, [w]) != [1]]
    assert lines(recording, wrote) == [3, 3, 3, 3, 11, 11, 14]
    steps = [recording.sites.all[w.site].steps for w in wrote]
    ways = [tuple(s.instruction for s in each if s.cell == 1) for each in steps]
    assert [len(way) for way in ways] == [2, 3, 2, 3, 2, 2, 1]
    assert len(set(ways)) == 4


def test_a_place_is_known_again() -> None:
    recording, _ = watched("x = torch.zeros(3)\nfor _ in range(5):\n    x.add_(1)\n")
    assert len({w.site for w in recording.log.wrote}) == 1


def test_no_frame_is_kept() -> None:
    recording, _ = watched(NESTED)
    assert not any(isinstance(held, FrameType) for held in gc.get_referents(recording.sites))
    assert not any(isinstance(held, FrameType) for held in vars(recording.sites).values())
