"""Optimizers made again where the parameters have changed."""

from __future__ import annotations

import pytest
from rewriting import applied, at, program_of

from autograd_explain.rewrite.transforms.made_again import made_again

OPT = "opt = torch.optim.SGD(net.parameters())\n"
#: Before, the changing statement in a cell of its own, whether the old ones go.
PROGRAMS = {
    "nothing reads it": (OPT, "net.fc = f()\n", True),
    "a scheduler": (OPT + "sched = make_schedule(opt)\n", "net.grow()\n", True),
    "it was used": (OPT + "opt.step()\n", "net[0].fc = f()\n", False),
    "a function that uses it was called": (
        OPT + "def step():\n    opt.step()\nstep()\n",
        "net.grow()\n",
        False,
    ),
    "a function that uses it": (OPT + "def step():\n    opt.step()\n", "f(net[1])\n", True),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_made_again(name: str) -> None:
    before, change, gone = PROGRAMS[name]
    program = program_of(before, change)
    new = applied(program, made_again(program, at(program, change.strip()), moved=True))
    made = next(line for line in before.splitlines(True) if line.startswith("opt"))
    assert new[-1].startswith(change + made)
    assert ("sched" in new[-1]) == ("sched" in before)
    assert (made not in new[-2]) == gone


def test_what_a_function_makes_of_the_module_is_no_optimizer() -> None:
    program = program_of("def build(m):\n    return Wrapper(m)\nopt = build(net)\n", "net.grow()\n")
    assert made_again(program, at(program, "net.grow()")) is None


def test_of_another_module_nothing_is_made() -> None:
    program = program_of(OPT, "other.grow()\n")
    assert made_again(program, at(program, "other")) is None
