"""Which runs a replay is made of."""

import pytest

from autograd_explain.model import Outcome
from autograd_explain.program import Program, Source
from autograd_explain.verification.cells import cells_of

SETUP = "import torch\nw = torch.ones(3, requires_grad=True)"
FAILING = "y = w.exp()\ny.mul_(2)\ny.sum().backward()"


def source(number, text, history=True, name=""):
    return Source(number, None, text, text, name or f"<{text}>", 0, history)


@pytest.mark.parametrize(
    ("runs", "found"),
    [
        ([(1, "a", True), (2, "b", True)], ["a", "b"]),
        ([(1, "a", True), (2, "silent", False), (2, "b", True)], ["a", "b"]),
        ([(1, "a", True), (2, "b", True), (2, "run by b", False)], ["a", "b"]),
        ([(1, "first", False), (1, "second", False)], ["second"]),
        ([(1, "a", False), (1, "a", True), (1, "run by a", False)], ["a"]),
    ],
)
def test_one_run_for_each_number(runs, found):
    program = Program(source(*run) for run in runs)
    assert [c.text for c in cells_of(program, runs[-1][0])] == found


def test_a_cell_in_parts_has_the_name_of_its_first():
    parts = (source(1, "a", True, "<first>"), source(1, "a", True, "<second>"))
    assert [c.filename for c in cells_of(Program(parts), 1)] == ["<first>"]


def test_a_run_outside_the_history_does_not_hide_the_cell(play):
    played = play(SETUP, FAILING, checkpoint=False)
    silent = source(2, "print(undefined)", False)
    first, last = played.program.cells
    program = Program((first, silent, last))
    edit = ("y.mul_(2)", "y = y.mul(2)")
    assert played.try_out(edit, program=program).outcome is Outcome.VERIFIED
