"""Values that the graph of a torch.fx module hands out and has written before."""

from __future__ import annotations

import pytest
from silent_programs import HEAD
from watching import signals

from autograd_explain.record.detect.graph_outputs import WrittenOutput

NET = (
    HEAD
    + """\
from torch import fx
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(3, 4), nn.Linear(4, 1)
        self.act = nn.ReLU(inplace=True)
    def forward(self, x):
        h = self.first(x)
        h = self.act(h)
        return self.last(h)
def tap(net, *names):
    traced = fx.symbolic_trace(net)
    named = {n.name: n for n in traced.graph.nodes}
    end = traced.graph.output_node()
    end.args = (GIVEN,)
    traced.recompile()
    return traced
net = Net()
taps = tap(net, "first", "last")
opt = torch.optim.SGD(net.parameters(), lr=0.1)
"""
)
AS_DICT = NET.replace("GIVEN", "{n: named[n] for n in names}")
AS_TUPLE = NET.replace("GIVEN", "tuple(named[n] for n in names)")
TRAINED = """\
for _ in range(2):
    out = taps(torch.ones(2, 3))
    loss = READ
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
BOTH = TRAINED.replace("READ", "out['last'].sum() + out['first'].square().sum()")
ACT = "h = self.act(h)"


@pytest.mark.parametrize(
    ("net", "loop", "output"),
    [
        (AS_DICT, BOTH, WrittenOutput("first", "first", "act", True)),
        (
            AS_TUPLE,
            BOTH.replace("'last'", "1").replace("'first'", "0"),
            WrittenOutput(0, "first", "act", True),
        ),
        (
            AS_DICT.replace(ACT, "h = torch.relu_(h)"),
            BOTH,
            WrittenOutput("first", "first", "relu_", False),
        ),
        (
            AS_DICT.replace(ACT, "h = h.mul_(2)"),
            BOTH,
            WrittenOutput("first", "first", "mul_", False),
        ),
        (
            AS_DICT.replace(ACT, "h = F.relu(h.view(2, 4), inplace=True)"),
            BOTH,
            WrittenOutput("first", "first", "relu", False),
        ),
        (
            NET.replace("GIVEN", 'named["first"]'),
            TRAINED.replace("READ", "out.square().sum()"),
            WrittenOutput(None, "first", "act", True),
        ),
    ],
)
def test_a_later_node_has_written_it(net: str, loop: str, output: WrittenOutput) -> None:
    (found,) = signals((net, loop))
    assert (found.name, found.evidence["way"]) == ("kept-output-overwritten", "handed_out")
    assert found.evidence["outputs"] == (output,)
    assert found.moments["changed"][0].place.source == "out = taps(torch.ones(2, 3))"
    assert found.evidence["tensor"]() is not None


COPIED = """\
graph = taps.graph
end = graph.output_node()
for node in end.all_input_nodes:
    with graph.inserting_after(node):
        end.replace_input_with(node, graph.call_function(torch.clone, (node,)))
taps.recompile()
"""


@pytest.mark.parametrize(
    ("net", "loop"),
    [
        (AS_DICT, TRAINED.replace("READ", "out['last'].sum()")),
        (AS_DICT, BOTH.replace("out['first']", "out['first'].detach()")),
        (AS_DICT.replace('"first", "last")', '"act", "last")'), BOTH.replace("'first'", "'act'")),
        (AS_DICT.replace("inplace=True", "inplace=False"), BOTH),
        (AS_DICT.replace("nn.ReLU(inplace=True)", "nn.Dropout(0.5, inplace=True).eval()"), BOTH),
        (AS_DICT.replace("self.act(h)", "self.act(h.clone())"), BOTH),
        (AS_DICT + COPIED, BOTH),
        (AS_DICT + "taps.act.inplace = False", BOTH),
    ],
)
def test_what_is_as_it_was_made_is_quiet(net: str, loop: str) -> None:
    for sure in (True, False):
        assert signals((net, loop), sure=sure) == []


def test_each_call_is_told_once() -> None:
    loop = BOTH.replace("range(2)", "range(6)")
    assert len(signals((AS_DICT, loop, loop))) == 2
