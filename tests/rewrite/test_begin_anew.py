"""A state that each round begins with anew, where the text says that the rounds are apart."""

from __future__ import annotations

import pytest
from rewriting import rewritten

from autograd_explain.knowledge.second_backward.begin_anew import begun_anew

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
