"""A state that each round begins with anew, where the text says that the rounds are apart."""

from __future__ import annotations

import pytest
from rewriting import rewritten

from autograd_explain.knowledge.second_backward.begin_anew import begun_anew, reset_anew

LOADER = "data = DataLoader(xs, shuffle={})\nh = None\nfor x in data:\n"
ONE = "    y, h = rnn(x, h)\n    f(y).backward()\n"
STEPS = (
    "h = zeros()\nfor {} in xs:\n    for t in {}:\n        h = cell(t, h)\n    f(h).backward()\n"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (LOADER.format(True) + ONE, "for x in data:\n    h = None\n    y, h"),
        (LOADER.format(False) + ONE, None),
        (STEPS.format("x", "x"), "for x in xs:\n    h = zeros()\n    for t in x:"),
        (STEPS.format("i", "range(i, i + 5)"), None),
        (STEPS.format("i", "data[i : i + 5]"), None),
    ],
)
def test_rounds_that_are_apart(text: str, expected: str | None) -> None:
    found = rewritten(begun_anew, text, "backward", "h")
    assert found is None if expected is None else expected in str(found)


CELL = """import torch
class Cell:
    def __init__(self, n):
        self.n = n
        self.mem, self.trace = torch.zeros(n), None
        self.seen = []
    def reset(self):
        {}
    def step(self, x):
        self.trace = x if self.trace is None else 0.9 * self.trace + x
        self.mem = self.mem + x  # made
        return self.mem
"""


@pytest.mark.parametrize(
    ("reset", "expected"),
    [
        ("self.mem.zero_()", "self.mem = torch.zeros_like(self.mem)\n"),
        (
            "self.mem.fill_(1)\n        self.trace.zero_()",
            "self.mem = torch.full_like(self.mem, 1)\n        self.trace = torch.zeros_like(",
        ),
        ("self.trace = None", "self.trace = None\n        self.mem = torch.zeros_like(self.mem)\n"),
        (
            "self.seen.clear()",
            "clear()\n        self.mem = torch.zeros_like(self.mem)\n        self.trace = None\n",
        ),
        ("print(self.n)", None),  # no reset
        ("self.trace = 1", None),  # not what the constructor gave it
    ],
)
def test_a_reset_that_leaves_the_graph_behind(reset: str, expected: str | None) -> None:
    found = rewritten(reset_anew, CELL.format(reset), "# made", "cell.mem")
    assert found is None if expected is None else expected in str(found)
