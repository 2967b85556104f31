"""A function of the user's that a library calls: what it did is inferred as in any other."""

from __future__ import annotations

import pytest
from knowledge.played import explained, play

from autograd_explain.model import What

SETUP = """
import re, timeit, torch
lin = torch.nn.Linear(3, 3)
x = torch.ones(2, 3)
"""
RAN: list[int] = []
STEP = """
    h = torch.sigmoid(lin(x))
    h += 1
    h.sum().backward()
"""


@pytest.mark.parametrize(
    ("head", "call"),
    [
        ("def step():", "timeit.timeit(step, number=3)"),
        ("def step(match):", "re.sub('a', step, 'banana')"),
        ("def step(match, other=1):", "re.sub('a', repl=step, string='banana')"),
    ],
)
def test_a_write_in_a_function_that_a_library_calls(head: str, call: str) -> None:
    found = explained((SETUP, head + STEP, call)).finding
    write, saved = found.event(What.CHANGED), found.event(What.SAVED)
    assert write is not None and write.place is not None and write.place.source == "h += 1"
    assert saved is not None and saved.place is not None
    assert [p.source for p in saved.chain] == [call]


def test_what_went_backward_in_an_earlier_call() -> None:
    cells = (
        SETUP + "h = lin(x).tanh()",
        "def step():\n    (h * 2).sum().backward()",
        "timeit.timeit(step, number=3)",
    )
    found = explained(cells).finding
    cause = found.event(What.CAUSE)
    assert found.cause == "second_backward" and found.event(What.FREED) is not None
    assert cause is not None and cause.place is not None and cause.place.line == 5


def test_the_function_itself_is_not_called_again() -> None:
    RAN.clear()
    step = f"from {__name__} import RAN\ndef step():\n    RAN.append(1)" + STEP
    found = play((SETUP, step, "timeit.timeit(step, number=3)"))
    assert found.trouble == "" and found.diagnosis is not None
    assert found.diagnosis.finding.event(What.CHANGED) is not None
    assert RAN == [1]
