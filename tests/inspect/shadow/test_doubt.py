"""Branches that hang on chance: live evidence decides, or nothing is said."""

from __future__ import annotations

from functools import partial

import pytest
from notebook import cells_of
from shadow_notebook import fresh_session, history_of, marked, run

from autograd_explain.inspect.shadow import InferredHistory, state
from autograd_explain.inspect.shadow.budget import RunLimits

ONE_OF_TWO = """# %%
import random
import torch
{seed}
w = torch.rand(3, requires_grad=True)
y = w.exp()
d = y.detach()
if random.random() < 0.5:
    d.mul_(2.0)
else:
    d.mul_(3.0)
y.sum().backward()
"""


def test_declines_where_both_arms_wrote_alike() -> None:
    cells = cells_of(ONE_OF_TWO.format(seed=""))
    for _ in range(3):
        with fresh_session():
            incident = run(cells)
        history = history_of(incident)
        saved = next(history.graph.overwritten())
        assert history.writes(saved) == ()
        maker = history.maker(saved.node)
        assert maker is not None and maker.place.line == 5


@pytest.mark.parametrize("seed", range(6))
def test_seeded_chance_is_repeated(seed: int) -> None:
    text = ONE_OF_TWO.format(seed=f"random.seed({seed}); torch.manual_seed({seed})")
    with fresh_session():
        incident = run(cells_of(text))
    import random

    first = random.Random(seed).random() < 0.5
    history = history_of(incident)
    (write, *_) = history.writes(next(history.graph.overwritten()))
    assert write.place.line == (8 if first else 10)


ARM_SHOWS = """# %%
import random
import torch
w = torch.rand(3, requires_grad=True)
y = w.exp()  # saved
if random.random() < 0.5:
    y.mul_(2.0)
    name = "mul"
else:
    y.add_(2.0)
    name = "add"
y.sum().backward()
"""


def test_graph_tells_which_arm_wrote() -> None:
    seen = set()
    for _ in range(8):
        with fresh_session():
            incident = run(cells_of(ARM_SHOWS))
        history = history_of(incident)
        (write, *_) = history.writes(next(history.graph.overwritten()))
        arm = incident.namespace["name"]
        seen.add(arm)
        assert write.op == f"{arm}_"
    assert seen


FAILS_ONLY_SOMETIMES = """# %%
import random
import torch
w = torch.rand(3, requires_grad=True)


def loss():
    y = w.exp()  # saved
    if random.random() < 0.3:
        y += 1  # wrote
    return y.sum()


# %%
while True:
    value = loss()
    value.backward()
"""


def test_failure_of_one_arm_is_found() -> None:
    cells = cells_of(FAILS_ONLY_SOMETIMES)
    with fresh_session():
        incident = run(cells)
    history = history_of(incident)
    saved = next(history.graph.overwritten())
    (write, *_) = history.writes(saved)
    maker = history.maker(saved.node)
    assert (write.place.cell, write.place.line) in marked(cells, "wrote")
    assert maker is not None
    assert (maker.place.cell, maker.place.line) in marked(cells, "saved")


LATE = """# %%
import torch
w = torch.rand(3, requires_grad=True)
kept = w.exp()
for epoch in range(9):
    for part in range(40):
        y = w.exp() if epoch < 7 else kept
        if {write}:
            for k in range(3):
                y[k] *= 2.0
        y.sum().backward(retain_graph=True)
"""


def _late(write: str, monkeypatch: pytest.MonkeyPatch) -> InferredHistory:
    """What is known of a program of which a walk cannot afford the rounds before the last."""
    with fresh_session():
        incident = run(cells_of(LATE.format(write=write)))
    monkeypatch.setattr(state, "RunLimits", partial(RunLimits, steps=150))
    return history_of(incident)


def test_the_round_that_failed_is_gone_to(monkeypatch: pytest.MonkeyPatch) -> None:
    history = _late("epoch == 5 and part == 9", monkeypatch)
    writes = history.writes(next(history.graph.overwritten()))
    assert {w.place.line for w in writes} == {9}
    assert [w.version for w in writes] == [1, 2, 3, 4, 5, 6]


def test_a_write_of_an_earlier_round_is_not_made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    history = _late("epoch == 5 and part == 9 and kept.mul_(2.0) is None", monkeypatch)
    assert history.writes(next(history.graph.overwritten())) == ()
