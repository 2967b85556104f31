"""Which earlier moments are rounds of the loops around a failing line."""

from __future__ import annotations

import ast
from dataclasses import replace

import pytest
from knowledge.played import explained

from autograd_explain.inspect.facts.failing_loops import FailingLoops, Loop, has_not_run
from autograd_explain.inspect.facts.no_graph import NoGraph, find
from autograd_explain.inspect.history import TraceEvent
from autograd_explain.inspect.scene import Scene
from autograd_explain.knowledge.graph_cut import diagnose
from autograd_explain.model import Place

CELL = """\
state = start()
for epoch in range(2):
    drawn = draw()
    for batch in data:
        state = step(state, batch)
        loss(state).backward()
after = state
"""


def moment(*lines: tuple[int, int]) -> TraceEvent:
    """What happened at the last of these lines (cell, line), called from those before."""
    *chain, place = (Place(cell, None, line, "") for cell, line in lines)
    return TraceEvent(0, place, "mul", tuple(chain))


def loops(cells: tuple[int, ...] = (2,), path: tuple[int, ...] = (6,)) -> FailingLoops:
    nodes = [n for n in ast.walk(ast.parse(CELL)) if isinstance(n, ast.For)]
    homes = frozenset((cell, None) for cell in cells)
    failed = tuple(Place(2, None, line, "") for line in path)
    return FailingLoops(failed, tuple(Loop(node, 0, homes) for node in nodes))


def test_a_round_is_in_the_body_or_called_from_it() -> None:
    known = loops()
    assert known.hold(moment((2, 3))) and known.hold(moment((2, 6)))
    assert known.hold(moment((2, 5), (1, 40)))
    assert not known.hold(moment((2, 1))) and not known.hold(moment((2, 7)))
    assert not known.hold(moment((2, 2))), "the head of a loop is not one of its rounds"
    assert not known.hold(moment((1, 5)))


def test_a_cell_that_ran_again_is_the_same_text() -> None:
    assert loops(cells=(1, 2)).hold(moment((1, 5)))


def test_the_innermost_is_that_of_the_line_that_raised() -> None:
    inner = loops().innermost
    assert inner is not None and inner.first == 4
    assert loops(path=(7,)).innermost is None and not FailingLoops((), ())


def test_what_is_drawn_once_for_all_rounds_of_the_inner_loop() -> None:
    assert loops().begin_after(moment((2, 3)))
    assert not loops().begin_after(moment((2, 5)))
    assert not loops().begin_after(moment((1, 3)))


def test_what_a_call_of_the_same_statement_has_computed() -> None:
    called = loops(path=(3, 6))
    drawn = (Place(2, None, 3, ""), Place(2, None, 40, "", "draw"))
    assert called.begin_after(TraceEvent(0, drawn[1], "mul", drawn[:1]))
    assert not called.begin_after(TraceEvent(0, drawn[1], "mul"))


FAILS = "    torch.ones(()).backward()\n    after = 0\n"
DEEPER = FAILS.replace("    ", "        ")
FUNCTION = f"def train():\n    for i in range(3):\n{DEEPER}"


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ((f"for i in range(3):\n{FAILS}",), True),
        ((f"for i, x in enumerate('ab'):\n{FAILS}",), True),
        ((f"for i in range(3):\n    if not i: continue\n{FAILS}",), False),
        ((f"for x in 'ab':\n{FAILS}",), False),
        ((f"for e in range(2):\n  if e:\n    for i in range(1):\n{DEEPER}",), False),
        ((FUNCTION, "train()"), True),
        ((FUNCTION, "for e in 'ab':\n    train()"), False),
        ((f"{FUNCTION}def other():\n    train()", "train()"), False),
    ],
)
def test_what_stands_behind_a_line_that_was_met_for_the_first_time(
    cells: tuple[str, ...], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def look(scene: Scene) -> NoGraph | None:
        failed = scene.path[-1]
        seen.append(has_not_run(scene, replace(failed, line=failed.line + 1)))
        assert not has_not_run(scene, failed)
        return find(scene)

    monkeypatch.setattr(diagnose, "find", look)
    explained(("import torch", *cells))
    assert set(seen) == {expected}
