"""An input of `torch.autograd.grad` that a loop has made anew without recording."""

from __future__ import annotations

from knowledge.played import added, edited, explained
from knowledge.test_cases import run

from autograd_explain.model import What

CHAIN = """
import torch
def chain(energy, x):
    x = x.requires_grad_()
    for _ in range(3):
        (slope,) = torch.autograd.grad(energy(x).sum(), x)
        with torch.no_grad():
            x = x + 0.1 * torch.randn_like(x)
    return x.detach()
"""


def test_the_update_of_a_loop_is_blamed() -> None:
    cells = (CHAIN, "chain(torch.nn.Linear(2, 1), torch.rand(4, 2))")
    found = explained(cells)
    place = found.finding.place(What.CAUSE)
    assert found.finding.tensors[0].names[0] == "x"
    assert place is not None and place.source == "x = x + 0.1 * torch.randn_like(x)"
    repaired = edited(cells, found.rewrites[0])
    assert added(cells, repaired) == ["x.requires_grad_()"]
    run(repaired)
