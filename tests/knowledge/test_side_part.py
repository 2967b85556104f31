"""Parts of a tensor that were taken beside the graph and differentiated with respect to.

A row is a notebook, the line that takes the part, and the lines that the first rewrite brings in.
"""

from __future__ import annotations

import pytest
from knowledge.played import added, edited, play
from knowledge.test_cases import run

from autograd_explain.model import What
from autograd_explain.render.topic_content import cells_of

BEGIN = """# %%
import torch
torch.manual_seed(0)
wave = torch.nn.Linear(2, 1)
# %%
"""
PROGRAMS: dict[str, tuple[str, str, list[str]]] = {
    "columns, through a helper, twice": (
        """
def slope(y, v):
    return torch.autograd.grad(y.sum(), v, create_graph=True)[0]
def residual(points):
    u = torch.tanh(wave(points))
    s = points[:, :1]
    u_s = slope(u, s)
    return slope(u_s, s) - u_s
residual(torch.rand(5, 2, requires_grad=True))
""",
        "s = points[:, :1]",
        ["u_s = slope(u, points)[:, :1]", "return slope(u_s, points)[:, :1] - u_s"],
    ),
    "two at once, with names of their own": (
        """
p = torch.rand(5, 2, requires_grad=True)
u = torch.tanh(wave(p))
a, b = p[:, 0], p[:, 1].clone()
u_a, u_b = torch.autograd.grad(u.sum(), (a, b))  # both
assert u_a.shape == u_b.shape == (5,)
""",
        "a, b = p[:, 0], p[:, 1].clone()",
        [
            "u_a, u_b = torch.autograd.grad(u.sum(), (p, p))  # both",
            "u_a = u_a[:, 0]",
            "u_b = u_b[:, 1]",
        ],
    ),
    "an element of what a layer gave, in a closure": (
        """
def influence(x):
    states = [torch.tanh(x)]
    states.append(wave(states[0]))
    first = states[0][2]
    def of(k):
        return torch.autograd.grad(states[1][k, 0], first, retain_graph=True)[0]
    return of(2)
assert influence(torch.rand(4, 2, requires_grad=True)).shape == (2,)
""",
        "first = states[0][2]",
        ["return torch.autograd.grad(states[1][k, 0], states[0], retain_graph=True)[0][2]"],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    text, taken, lines = PROGRAMS[name]
    cells = cells_of(BEGIN + text)
    found = play(cells).diagnosis
    assert found is not None
    assert found.finding.cause == "unused_in_graph"
    place = found.finding.place(What.CAUSE)
    assert place is not None
    assert place.source == taken
    repaired = edited(cells, found.rewrites[0])
    assert added(cells, repaired) == lines
    run(repaired)


def test_a_whole_that_the_graph_does_not_use_is_not_asked_for() -> None:
    text = """
p, q = torch.rand(5, 2, requires_grad=True), torch.rand(5, 2, requires_grad=True)
torch.autograd.grad(wave(q).sum(), p[:, 0])
"""
    found = play(cells_of(BEGIN + text)).diagnosis
    assert found is not None
    assert "take_part" not in [r.fix for r in found.rewrites]
