"""What an object gathers of several calls, computed of one."""

from __future__ import annotations

import pytest
from rewriting import at, program_of, result

from autograd_explain.rewrite.transforms.gathered import object_called, objects_called

LOOP = "m.reset()\nfor x, y in parts:\n    @\nloss = 1 - m.compute()\n"
JOINED = (
    "m.reset()\ngiven = []\nfor x, y in parts:\n    given.append((net(x), y))\n"
    "loss = 1 - m(*(torch.cat(each) for each in zip(*given)))\n"
)


def called(code: str, needle: str = "net(x)") -> str | None:
    program = program_of(code)
    return result(object_called(program, at(program, needle)))


def test_of_one_call() -> None:
    assert called("m.update(net(x), y)\nloss = 1 - m.compute()\n") == "loss = 1 - m(net(x), y)\n"


@pytest.mark.parametrize("call", ["m.update(net(x), y)", "m(net(x), y)", "part = m(net(x), y)"])
def test_of_each_round(call: str) -> None:
    assert called(LOOP.replace("@", call)) == JOINED


def test_what_is_given_alone_may_be_a_single_number() -> None:
    assert called(LOOP.replace("@", "m.update(loss_of(net(x), y))")) == (
        "m.reset()\ngiven = []\nfor x, y in parts:\n    given.append(loss_of(net(x), y))\n"
        "loss = 1 - m(torch.cat([*map(torch.atleast_1d, given)]))\n"
    )


@pytest.mark.parametrize(
    "rest",
    [
        "m.update(net(x), target=y)",  # what is to be joined has a name
        "part = m(net(x), y)\n    log.append(part)",
        "m.update(net(x), y)\n    print(m.compute())",
    ],
)
def test_what_a_round_needs_stays(rest: str) -> None:
    assert called(LOOP.replace("@", rest).replace("m.compute()\n", "0\n")) is None


def test_names_that_are_read_stay() -> None:
    assert called(LOOP.replace("@", "part = m(net(x), y)\n    log.append(part)")) is None


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
