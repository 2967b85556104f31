"""The lines from the overwritten value to the loss, in real sessions."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from notebook import captured, shell_with_extension

import autograd_explain
from autograd_explain.intercept import guard
from autograd_explain.loss_path import MOST_LINES
from autograd_explain.model import GraphLine

START = "import torch\ntorch.set_num_threads(1)\nw = torch.ones(3, requires_grad=True)\n"


@pytest.fixture
def shell() -> Iterator[Any]:
    with captured(), shell_with_extension() as made:
        yield made


def graph(shell: Any, *cells: str) -> tuple[GraphLine, ...]:
    for cell in cells:
        shell.run_cell(cell, store_history=True)
    assert guard.report() == ""
    last = autograd_explain.last()
    assert last is not None
    return last.diagnosis.graph


def sources(lines: tuple[GraphLine, ...]) -> list[str]:
    return [line.place.source if line.place else "" for line in lines]


BRANCHES = (
    "h = torch.sigmoid(w)\na = h * 2\nb = a.exp()\nunused = w * 5\nb += 1\n"
    "loss = (a + b).sum()\nloss.backward()"
)


@pytest.mark.parametrize("head", ["", "%%autograd_check --no-verify\n"])
def test_lines_that_the_gradient_passes(shell: Any, head: str) -> None:
    found = graph(shell, START, head + BRANCHES)
    assert sources(found) == ["b = a.exp()", "b += 1", "loss = (a + b).sum()"]
    assert [line.inputs for line in found] == [(), (0,), (1,)]


def test_an_optimizers_step_stands_beside(shell: Any) -> None:
    found = graph(
        shell,
        START + "net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 1))\n"
        "opt = torch.optim.SGD(net.parameters(), lr=.1)",
        "y = net(w)\nfirst = y.sum()\nsecond = (y ** 2).sum()\nfirst.backward(retain_graph=True)\n"
        "opt.step()\nsecond.backward()",
    )
    assert sources(found) == ["y = net(w)", "second = (y ** 2).sum()", "opt.step()"]
    assert [line.inputs for line in found] == [(), (0,), ()]
    assert "net[1].weight" in found[0].leaves


def test_repeated_layers_are_one_line(shell: Any) -> None:
    found = graph(
        shell,
        START + "layers = [torch.nn.Linear(3, 3) for _ in range(30)]",
        "h = torch.tanh(w)\ng = h * h\nh += 1\nfor layer in layers:\n    g = torch.relu(layer(g))\n"
        "g.sum().backward()",
    )
    assert sources(found)[0] == "g = h * h"
    folded = next(line for line in found if line.count == 30)
    assert folded.place is not None and folded.place.source == "g = torch.relu(layer(g))"


def test_a_long_way_is_shortened(shell: Any) -> None:
    steps = "\n".join(f"g{n + 1} = g{n} * 2" for n in range(40))
    found = graph(
        shell, START, f"h = torch.tanh(w)\ng0 = h * h\nh += 1\n{steps}\ng40.sum().backward()"
    )
    assert len(found) == MOST_LINES
    assert sources(found)[0] == "g0 = h * h" and sources(found)[-1] == "g40.sum().backward()"
    between = next(line for line in found if line.place is None)
    assert between.count + len(found) - 1 == 43
    assert all(i < n for n, line in enumerate(found) for i in line.inputs)


@pytest.mark.parametrize("head", ["", "%%autograd_check --no-verify\n"])
def test_what_an_earlier_backward_has_freed(shell: Any, head: str) -> None:
    found = graph(
        shell,
        START,
        head + "z = torch.tanh(w)\na = z.square().sum()\nb = (z * 2).exp().sum()\n"
        "a.backward()\nb.backward()",
    )
    assert sources(found) == ["z = torch.tanh(w)", "b = (z * 2).exp().sum()", "a.backward()"]
    assert [line.inputs for line in found] == [(), (0,), ()]
    assert [line.freed for line in found] == ["all", "", ""]
    last = autograd_explain.last()
    assert last is not None
    assert "leaves `w`; its saved values are freed" in last.to_text(120)
    assert [line.count("<svg") for line in (last.to_html(), last.to_text())] == [4, 0]


def test_of_a_carried_state_earlier_runs_are_freed(shell: Any) -> None:
    found = graph(
        shell,
        START + "h = torch.ones(3)",
        "for _ in range(3):\n    h = h * w\n    loss = h.exp().sum()\n    loss.backward()",
    )
    assert [(line.freed, line.count) for line in found if line.inputs or line.leaves] == [
        ("first", 2),
        ("", 1),
    ]


def test_none_where_nothing_was_overwritten(shell: Any) -> None:
    assert graph(shell, START, "w += 1") == ()


def test_nothing_is_kept_alive_and_nothing_changed(shell: Any) -> None:
    before = torch.get_rng_state()
    graph(shell, START, BRANCHES)
    assert torch.equal(torch.get_rng_state(), before)
    assert shell.user_ns["w"]._version == 0 and shell.user_ns["b"]._version == 1
    alive = [weakref.ref(shell.user_ns[name]) for name in ("h", "a", "b", "loss")]
    shell.run_cell("del h, a, b, loss, unused", store_history=True)
    shell.run_cell("raise ValueError('the next error')", store_history=True)
    gc.collect()
    assert [ref() for ref in alive] == [None] * 4
