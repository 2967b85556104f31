"""`torch.autograd.grad` inside a helper: the caller's line is blamed, and what stands in for the
input is a tensor whose gradient is the same."""

from __future__ import annotations

import pytest
from knowledge.played import edited, play
from knowledge.test_cases import run

from autograd_explain.model import What
from autograd_explain.render.topic_content import cells_of

START = "# %%\nimport torch\nfrom torch import nn\n"
HELPER = """# %%
def slope(y, x):
    return torch.autograd.grad(y.sum(), x, create_graph=True)[0]
"""
#: What follows the helper, the blamed line, the headline's beginning, the rewrite's line or "".
PROGRAMS = {
    "a rescaled copy: its source has another gradient": (
        """
def residual(net, t):
    u = net(t / 4)
    s = t / 4
    return slope(u, s) / 4 - u
net, t = nn.Linear(1, 1), torch.rand(5, 1, requires_grad=True)
# %%
residual(net, t).sum().backward()
""",
        "return slope(u, s) / 4 - u", "`u` was computed from `t`; `s` was made", "",
    ),
    "the same numbers in another shape, the leaf a parameter of the caller": (
        """
def residual(net, t):
    u = net(t)
    flat = t.reshape(-1)
    return slope(y=u, x=flat)
net, days = nn.Linear(1, 1), torch.rand(5, 1, requires_grad=True)
# %%
residual(net, days).sum().backward()
""",
        "return slope(y=u, x=flat)", "`u` was computed from `t`; `flat` was made",
        "    return slope(y=u, x=t)",
    ),
    "through two helpers": (
        """
class Field:
    def __init__(self, net):
        self.net = net
    def slope(self, y, x):
        return slope(y, x)
field = Field(nn.Linear(2, 1))
x = torch.rand(3, 2, requires_grad=True)
# %%
energy = field.net(x)
force = -field.slope(energy, x.clone())
""",
        "force = -field.slope(energy, x.clone())", "`energy` was computed from `x`;",
        "force = -field.slope(energy, x)",
    ),
    "a helper with an input of its own": (
        """
def force(net, x):
    flat = x.view(-1)
    return torch.autograd.grad(net(x).sum(), flat)[0]
net, x = nn.Linear(2, 1), torch.rand(3, 2, requires_grad=True)
# %%
print(force(net, x))
""",
        "return torch.autograd.grad(net(x).sum(), flat)[0]", "`net(x).sum()` was computed from `x`",
        "    return torch.autograd.grad(net(x).sum(), x)[0]",
    ),
    "a name of the notebook that means another tensor in the function": (
        """
def force(model, x):
    y = model["out"](x)
    w = model["out"].weight.clone()
    return torch.autograd.grad(y.sum(), w)[0].sum()
model = nn.Linear(2, 1)
# %%
print(force({"out": model}, torch.rand(3, 2)))
""",
        "return torch.autograd.grad(y.sum(), w)[0].sum()", "`y.sum()` was computed from `model",
        """    return torch.autograd.grad(y.sum(), model['out'].weight)[0].sum()""",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_helper(name: str) -> None:
    text, blamed, said, line = PROGRAMS[name]
    cells = cells_of(START + HELPER + text)
    found = play(cells)
    assert found.trouble == "" and found.diagnosis is not None, found.output
    cause = found.diagnosis.finding.event(What.CAUSE)
    assert cause is not None and cause.place is not None and cause.place.source == blamed
    assert said in found.output.replace("\n", " ")
    fixes = [r for r in found.diagnosis.rewrites]
    assert bool(fixes) == bool(line)
    if fixes:
        repaired = edited(cells, fixes[0])
        assert line in [row for cell in repaired for row in cell.splitlines()]
        run(repaired)
