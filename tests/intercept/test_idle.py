"""What is loaded while no cell runs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from prompt_toolkit import PromptSession
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from autograd_explain.intercept import guard
from autograd_explain.intercept import idle as idle_module
from autograd_explain.intercept.idle import Idle


class Loop:
    """The kernel's loop; `turn` comes to the next callback."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def call_later(self, seconds: float, callback: Callable[[], None]) -> None:
        self.waiting.append(callback)

    def turn(self) -> None:
        self.waiting.pop(0)()


@pytest.fixture
def loop() -> Loop:
    return Loop()


def _shell(loop: Loop) -> Any:
    return SimpleNamespace(kernel=SimpleNamespace(io_loop=loop))


def test_step_by_step_and_never_during_a_cell(loop: Loop) -> None:
    done: list[int] = []
    busy = False

    def steps() -> Iterator[None]:
        for number in range(2):
            done.append(number)
            yield

    idle = Idle(_shell(loop), steps, lambda: busy)
    idle.begin()
    idle.begin()
    assert len(loop.waiting) == 1
    loop.turn()
    busy = True
    loop.turn()
    assert done == [0] and not loop.waiting
    busy = False
    idle.begin()
    loop.turn()
    loop.turn()
    idle.begin()
    assert done == [0, 1] and not loop.waiting


def test_nothing_where_there_is_no_loop_or_after_the_end(loop: Loop) -> None:
    Idle(SimpleNamespace(), lambda: iter([None]), bool).begin()
    idle = Idle(_shell(loop), lambda: iter([None]), bool)
    idle.begin()
    idle.end()
    loop.turn()
    assert not loop.waiting


def test_a_step_that_fails_is_the_last(loop: Loop) -> None:
    def steps() -> Iterator[None]:
        raise ValueError("no")
        yield

    idle = Idle(_shell(loop), steps, bool)
    idle.begin()
    loop.turn()
    assert not loop.waiting
    assert "ValueError: no" in guard.report()
    guard.clear()


def test_while_a_terminal_waits_for_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idle_module, "_FIRST", 0.0)
    done: list[int] = []
    with create_pipe_input() as typed:
        prompt: PromptSession[str] = PromptSession(input=typed, output=DummyOutput())

        def steps() -> Iterator[None]:
            for number in range(3):
                done.append(number)
                if number == 2:
                    typed.send_text("x\n")
                yield

        idle = Idle(SimpleNamespace(pt_app=prompt), steps, bool)
        idle.begin()
        assert not done
        assert prompt.prompt() == "x"
        assert done == [0, 1, 2]
        typed.send_text("y\n")
        assert prompt.prompt() == "y"


CHECK = """
import random, sys, torch
torch.set_num_threads(1)
state, ours = torch.get_rng_state(), random.getstate()
assert "libcst" not in sys.modules and "autograd_explain" not in sys.modules
from autograd_explain.warm_up import steps
from autograd_explain.isolation.generators import kept
kept()(lambda: [None for _ in steps()])()  # as in a session: rich draws a random number
assert torch.equal(torch.get_rng_state(), state) and random.getstate() == ours
import autograd_explain
import autograd_explain.intercept.plain
before = set(sys.modules)
try:
    h = torch.ones(2, requires_grad=True).exp()
    h += 1
    h.sum().backward()
except RuntimeError as error:
    autograd_explain.explain(error).to_html()
late = set(sys.modules) - before
ours = {name for name in late if name.startswith("autograd_explain.")}
print(sorted(late & {"libcst", "jinja2", "markdown_it", "yaml", "executing"}), sorted(ours))
"""


def test_everything_heavy_is_loaded_and_nothing_changed() -> None:
    done = subprocess.run([sys.executable, "-c", CHECK], capture_output=True, text=True)
    assert done.stdout == "[] []\n", done.stderr
