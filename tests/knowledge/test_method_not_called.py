"""Methods that a line names and does not call."""

from __future__ import annotations

import pytest
from knowledge.played import added, edited, play
from notebook import cells_of

from autograd_explain.model import Outcome

CODE = """# %%
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Linear(3, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(4, 3)
def round_of(x):
    opt.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    opt.step()
    return loss
# %%
for _ in range(3):
    round_of(x)
"""


@pytest.mark.parametrize("call", ["loss.backward", "opt.step", "opt.zero_grad"])
@pytest.mark.parametrize("place", ["function", "cell"])
def test_it_is_told_once(call: str, place: str) -> None:
    code = CODE.replace(f"{call}()", call)
    if place == "cell":
        body = code.partition("def round_of(x):\n")[2].partition("    return")[0]
        code = code.partition("def")[0] + f"# %%\nfor _ in range(3):\n{body}"
    cells = cells_of(code)
    found = play(cells, watched=True, verify=True).diagnosis
    assert found is not None and found.finding.cause == "method_not_called"
    assert found.finding.facts["call"] == call
    first = found.rewrites[0]
    assert first.outcome is Outcome.RUNS
    assert tuple(added(cells, edited(cells, first))) == (f"{call}()",)
    assert play(edited(cells, first), watched=True).diagnosis is None


def test_what_a_cell_shows_is_meant() -> None:
    assert play(cells_of(CODE + "opt.step\n"), watched=True).diagnosis is None


def test_a_function_that_did_not_run_is_left_alone() -> None:
    code = CODE.replace("# %%\nfor", "def later():\n    opt.step\n    return model(x)\n# %%\nfor")
    assert play(cells_of(code), watched=True).diagnosis is None
