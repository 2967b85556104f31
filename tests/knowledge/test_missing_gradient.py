"""`.grad` is None behind a backward, as the leaf was cut off from the loss on the way.

A row is a notebook, the parameter, the expression (or block) that cuts, and a line that the first
rewrite brings in, "" where none is honest.
"""

from __future__ import annotations

import pytest
from knowledge.played import edited, explained, play
from knowledge.test_cases import run

from autograd_explain.model import What
from autograd_explain.render.topic_content import cells_of

START = """# %%
import torch
from torch import nn
torch.manual_seed(0)
enc, dec = nn.Linear(4, 3), nn.Linear(3, 4)
x = torch.rand(5, 4)
# %%
"""
PROGRAMS: dict[str, tuple[str, str, str, str]] = {
    "a block without recording": (
        "with torch.no_grad():\n    z = enc(x)\nloss = dec(z).square().mean()\nloss.backward()\n"
        "print(sum(p.grad.norm() for p in [*enc.parameters(), *dec.parameters()]))\n",
        "enc.weight",
        "with torch.no_grad():",
        "z = enc(x)",
    ),
    "numbers inside a forward": (
        "class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.emb, self.out = nn.Embedding(9, 3), nn.Linear(3, 1)\n"
        "    def forward(self, t):\n        e = torch.tensor(self.emb(t).tolist())\n"
        "        return self.out(e)\nmodel = Model()\n"
        "model(torch.tensor([1, 2])).sum().backward()\n"
        "for name, p in model.named_parameters():\n    print(name, p.grad.abs().mean())\n",
        "model.emb.weight",
        "e = torch.tensor(self.emb(t).tolist())",
        "        e = self.emb(t)",
    ),
    "an argmax, and two gradients in a line": (
        "hard = nn.functional.one_hot(enc(x).argmax(-1), 3).float()\n"
        "loss = dec(hard).square().mean()\nloss.backward()\n"
        "print(dec.weight.grad.norm(), enc.weight.grad.norm())\n",
        "enc.weight",
        "hard = nn.functional.one_hot(enc(x).argmax(-1), 3).float()",
        "",
    ),
    "a product with it": (
        "loss = dec(enc(x).detach()).sum()\nloss.backward()\nstep = enc.weight.grad * 0.1\n",
        "enc.weight",
        "loss = dec(enc(x).detach()).sum()",
        "loss = dec(enc(x)).sum()",
    ),
    "forces of distances that NumPy has computed": (
        "import numpy as np\nscale, head = nn.Parameter(torch.ones(1)), nn.Linear(1, 1)\n"
        "class Potential(nn.Module):\n    def forward(self, pos, senders, receivers):\n"
        "        xyz = pos.detach().numpy()\n        delta = xyz[receivers] - xyz[senders]\n"
        "        r = np.linalg.norm(delta, axis=1, keepdims=True)\n"
        "        return (scale * head(torch.tensor(r))).sum()\n"
        "pos = torch.rand(4, 3, requires_grad=True)\nmodel = Potential()\n"
        "senders = np.array([0, 1])\nreceivers = np.array([1, 2])\n# %%\n"
        "e = model(pos, senders, receivers)\ne.backward()\nforces = -pos.grad\n",
        "pos",
        "xyz = pos.detach().numpy()",
        "        r = torch.linalg.norm(delta, axis=1, keepdims=True)",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    text, parameter, cause, line = PROGRAMS[name]
    cells = cells_of(START + text)
    found = explained(cells)
    assert found.finding.cause == "silent_cut"
    assert parameter in found.finding.tensors[0].names
    place = found.finding.place(What.CAUSE)
    assert place is not None and place.source == cause
    if line:
        new = edited(cells, found.rewrites[0])
        assert line in "\n".join(new).splitlines()
        run(new)
    else:
        assert not found.rewrites


def test_a_part_that_takes_no_part() -> None:
    text = "dec(torch.rand(2, 3)).sum().backward()\nprint(enc.weight.grad.norm())\n"
    assert explained(cells_of(START + text)).finding.cause == "no_gradient_yet"


def test_what_a_watched_cell_has_cut_is_told_where_no_text_leads_there() -> None:
    text = (
        "for _ in range(2):\n    dec.bias = nn.Parameter(enc(x).mean(1)[:4])\n"
        "    loss = dec(torch.rand(2, 3)).square().mean()\n    loss.backward()\n"
        "print(enc.weight.grad.norm())\n"
    )
    found = play(cells_of(START + text), watched=True).diagnosis
    assert found is not None and found.finding.cause == "silent_cut"
    place = found.finding.place(What.CAUSE)
    assert place is not None and place.source == "dec.bias = nn.Parameter(enc(x).mean(1)[:4])"
