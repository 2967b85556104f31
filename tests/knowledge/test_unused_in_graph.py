"""A cast to integers between an input and a result: what is proposed goes by what reads them."""

from __future__ import annotations

import pytest
from knowledge.played import explained

from autograd_explain.render.topic_content import cells_of

PROGRAM = """# %%
import torch
from torch import nn
torch.manual_seed(0)
words, head = nn.Embedding(9, 3), nn.Linear(3, 1)
def score(ids):
    @
    return head(x).sum()
ids = torch.tensor([1.0, 2.0, 4.0], requires_grad=True)
# %%
out = score(ids)
grads = torch.autograd.grad(out, ids)
"""


@pytest.mark.parametrize(
    ("cast", "kept"),
    [
        ("rows = ids.long()\n    x = words(rows)", True),
        ("x = words(ids.int())", True),
        ("x = words.weight[ids.long()]", True),
        ("rows = ids.long()\n    x = nn.functional.one_hot(rows, 9).float() @ words.weight", True),
        ("x = ids.long() * words.weight[0]", False),
    ],
)
def test_integers_that_choose_stay(cast: str, kept: bool) -> None:
    found = explained(cells_of(PROGRAM.replace("@", cast)))
    assert found.finding.cause == "unused_in_graph"
    assert any(r.fix == "uncut" for r in found.rewrites) is not kept
