"""What an object gathers of several calls, computed of one."""

from __future__ import annotations

import pytest
from rewriting import at, program_of, result

from autograd_explain.rewrite.transforms.call_edits import object_called, objects_called


def called(code: str, needle: str = "net(x)") -> str | None:
    program = program_of(code)
    return result(object_called(program, at(program, needle)))


def test_of_one_call() -> None:
    assert called("m.update(net(x), y)\nloss = 1 - m.compute()\n") == "loss = 1 - m(net(x), y)\n"


TWO = """\
def objective(out, y):
    parts.reset()
    parts.update(out, y)
    wave.update(out)
    terms = {"mse": parts.compute()["mse"], "tv": wave.compute()}
    return terms["mse"] + terms["tv"]
"""


@pytest.mark.parametrize("needles", [("parts.up", "wave.up"), ("wave.up", "reset", "parts.up")])
def test_of_several_objects(needles: tuple[str, ...]) -> None:
    program = program_of(TWO)
    assert result(objects_called(program, [at(program, n) for n in needles])) == (
        "def objective(out, y):\n    parts.reset()\n"
        '    terms = {"mse": parts(out, y)["mse"], "tv": wave(out)}\n'
        '    return terms["mse"] + terms["tv"]\n'
    )


def test_what_was_given_twice_stays() -> None:
    """A call computes of what it is given alone."""
    assert called("m.update(net(x), y)\nm.update(net(z), y)\nl = m.compute()\n", "net(x)") is None
    assert called("m.update(net(x), y)\nm.update(net(z), y)\nl = m.compute()\n", "net(z)") is None
