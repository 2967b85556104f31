"""Functions of the user's that have the names of torch's: a call is of what its name stands for."""

from __future__ import annotations

import pytest
from knowledge.played import edited, play
from knowledge.test_cases import run

from autograd_explain.render.topic_content import cells_of

#: The notebook, the cause, a line of the first rewrite.
PROGRAMS = {
    "vmap": (
        """# %%
import torch
def vmap(function, rows):
    return torch.stack([function(row) for row in rows])
def noisy(v):
    return (v + 0.1 * torch.randn_like(v)).sin()
batch = torch.ones(4, 3, requires_grad=True)
# %%
rows = vmap(torch.sin, batch)
torch.func.vmap(noisy)(batch).sum().backward()
""",
        "vmap_randomness",
        'torch.func.vmap(noisy, randomness="different")(batch).sum().backward()',
    ),
    "checkpoint": (
        """# %%
import io
import torch
block = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 4))
def checkpoint(model, file):
    torch.save(model.state_dict(), file)
# %%
checkpoint(block, io.BytesIO())
x = torch.randn(2, 4, requires_grad=True)
y = torch.utils.checkpoint.checkpoint(block, x)
y.square().mean().backward()
""",
        "checkpoint_use_reentrant",
        "y = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)",
    ),
    "a distribution": (
        """# %%
import torch
class Categorical(torch.nn.Module):
    def forward(self, rows):
        return torch.nn.functional.one_hot(rows, 3).float()
mean = torch.zeros(3, requires_grad=True)
# %%
rows = Categorical()(torch.tensor([0, 2]))
draw = torch.distributions.Normal(mean, 1.0).sample()
(draw * rows).sum().backward()
""",
        "graph_cut",
        "draw = torch.distributions.Normal(mean, 1.0).rsample()",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_function_of_ones_own_is_not_taken_for_torchs(name: str) -> None:
    text, cause, line = PROGRAMS[name]
    cells = cells_of(text)
    found = play(cells)
    assert found.trouble == "" and found.diagnosis is not None, found.output
    assert found.diagnosis.finding.cause == cause
    repaired = edited(cells, found.diagnosis.rewrites[0])
    assert line in "\n".join(repaired).splitlines()
    run(repaired)
