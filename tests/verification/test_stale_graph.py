"""What an optimizer's steps have made old may not be proven by a program that uses it on."""

from __future__ import annotations

from sessions import run_in_session

KEEPS = """\
import torch
class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin, self._cached = torch.nn.Linear(3, 1), None
    def warm(self, gate):
        self._cached = gate * 2
    def forward(self, x):
        return self.lin(x) * self._cached
"""
CELLS = (
    """\
import torch
torch.manual_seed(0)
x = torch.randn(4, 3)
logit = torch.nn.Parameter(torch.zeros(()))
layer = Scaled()
optimizer = torch.optim.SGD([logit, *layer.parameters()], lr=0.1)
""",
    """\
def train(number):
    optimizer.zero_grad()
    if number == 0:
        layer.warm(torch.sigmoid(logit))
    loss = layer(x).square().mean()
    loss.backward()
    {step}
[train(number) for number in range(3)]
""",
)


def kept(step: str) -> list[str]:
    cells = (KEEPS, *(cell.replace("{step}", step) for cell in CELLS))
    told = run_in_session(cells, watched=True).reports[-1].told
    return [
        rewrite["outcome"]
        for rewrite in told["rewrites"]
        if any("retain_graph" in edit["new_source"] for edit in rewrite["edits"])
    ]


def test_a_graph_kept_over_a_step_is_never_verified() -> None:
    assert "verified" not in kept("optimizer.step()")


def test_a_graph_kept_without_a_step_may_be() -> None:
    assert "verified" in kept("pass")
