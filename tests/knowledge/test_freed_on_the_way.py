"""A derivative on the way to the loss that freed the graph, of a value whose making the history
could not follow: the lines that the loss is computed by tell of it."""

from __future__ import annotations

from knowledge.played import edited, play

from autograd_explain.model import What
from autograd_explain.render.topic_content import cells_of

START = """# %%
import torch
from torch import nn
torch.manual_seed(0)
torch.set_num_threads(1)
generated = {"torch": torch}
exec("def radial(d):\\n    return torch.exp(-d * d)", generated)
radial = generated["radial"]
class Energy(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(3, 1)
    def forward(self, pos):
        energy = self.out(radial(pos)).tanh().sum()
        forces = -torch.autograd.grad(energy, pos)[0]
        return energy, forces
model = Energy()
pos = torch.randn(5, 3, requires_grad=True)
# %%
"""
FREED = """energy, forces = model(pos)
loss = (energy - 1).pow(2) + forces.pow(2).mean()
loss.backward()
"""
#: The energy, which the derivative was taken of, is no part of this loss.
BESIDE = """h = radial(nn.Linear(3, 3)(pos.detach())).tanh()
h.sum().backward()
energy, forces = model(pos)
loss = (h - forces).pow(2).mean()
loss.backward()
"""


def test_the_derivative_is_told_as_what_freed_the_graph() -> None:
    cells = cells_of(START + FREED)
    found = play(cells, watched=False).diagnosis
    assert found is not None
    assert found.finding.cause == "second_backward"
    assert found.finding.variant == "derivative"
    cause = found.finding.place(What.CAUSE)
    assert cause is not None
    assert cause.source == "forces = -torch.autograd.grad(energy, pos)[0]"
    assert found.finding.tensors[0].names == ("energy",)
    assert "grad(energy, pos, create_graph=True)" in edited(cells, found.rewrites[0])[0]


def test_a_loss_without_what_was_differentiated_has_another_cause() -> None:
    found = play(cells_of(START + BESIDE), watched=False).diagnosis
    assert found is not None
    assert found.finding.variant != "derivative"
