"""Copies of modules that keep a result: what a library copies, and what another method goes on
with."""

from __future__ import annotations

from knowledge.played import edited, explained, play
from knowledge.test_cases import run

from autograd_explain.render.topic_content import cells_of

MODEL = """# %%
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head, self.aux = nn.Linear(3, 4), nn.Linear(4, 1), nn.Linear(4, 1)
        self.tokens = None
    def forward(self, x):
        self.tokens = self.body(x)
        return self.head(self.tokens)
    def second(self):
        return self.aux(self.tokens)
model = Net()
model(torch.ones(2, 3))
# %%
mean = AveragedModel(model)
"""


def test_what_a_library_copies() -> None:
    cells = cells_of(MODEL)
    found = explained(cells)
    assert found.finding.cause == "deepcopy_non_leaf"
    new = edited(cells, found.rewrites[0])
    assert new[-1].strip() == "model.tokens = None\nmean = AveragedModel(model)"
    run(new)


def test_nothing_takes_the_graph_of_what_another_method_reads() -> None:
    told = play(cells_of(MODEL), watched=True, verify=True).diagnosis
    assert told is not None
    edits = [e.new_source for r in told.rewrites for e in r.edits]
    assert edits and not any("detach()" in text or "nn.Parameter" in text for text in edits)
