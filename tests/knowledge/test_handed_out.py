"""What the graph of a torch.fx module hands out stays what the program asked for."""

from __future__ import annotations

import pytest
import torch
from knowledge.played import edited, play
from notebook import Notebook

from autograd_explain.model import Outcome

MODEL = """\
import torch
from torch import fx, nn
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.ModuleList([nn.Linear(3, 4), nn.ReLU(inplace=True), nn.Linear(4, 1)])
    def forward(self, x):
        for layer in self.body:
            x = layer(x)
        return x
def tap(net, *names):
    traced = fx.symbolic_trace(net)
    traced.graph.output_node().args = ([n for n in traced.graph.nodes if n.name in names],)
    traced.recompile()
    return traced
class Taps(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.graph_of = tap(net, "body_0", "body_2")
    def forward(self, x):
        return self.graph_of(x)
net = Net()
"""
LOOP = """\
for _ in range(2):
    low, out = taps(torch.ones(2, 3))
    loss = out.sum() + low.square().sum()
    net.zero_grad()
    loss.backward()
"""
BY_FUNCTION = MODEL.replace("nn.ReLU(inplace=True)", "nn.Identity()")
BY_FUNCTION = BY_FUNCTION.replace("x = layer(x)", "x = layer(x).mul_(2)")


@pytest.mark.parametrize(
    ("cells", "fix", "expected"),
    [
        (
            (MODEL + 'taps = tap(net, "body_0", "body_2")', LOOP),
            "layer_not_inplace",
            'taps.get_submodule("body.1").inplace = False',
        ),
        (
            (MODEL + "taps = Taps(net)", LOOP),
            "layer_not_inplace",
            'self.graph_of.get_submodule("body.1").inplace = False',
        ),
        (
            (BY_FUNCTION + 'taps = tap(net, "body_0", "body_2")', LOOP),
            "copy_in_graph",
            "taps.recompile()",
        ),
    ],
)
def test_the_values_are_those_of_the_node(cells: tuple[str, ...], fix: str, expected: str) -> None:
    found = play(cells, watched=True, verify=True).diagnosis
    assert found is not None and found.finding.variant == "handed_out"
    first = found.rewrites[0]
    assert (first.fix, first.outcome) == (fix, Outcome.RUNS)
    new = edited(cells, first)
    assert expected in "".join(new)
    for text in (cells, new):
        notebook = Notebook({"__name__": "__main__"})
        for cell in text:
            exec(notebook.add(cell), notebook.namespace)
        inside = notebook.namespace
        given = inside["net"].body[0](torch.ones(2, 3))
        assert torch.equal(inside["low"], given) is (text is not cells)
