"""Recording a program on a device neither reads nor waits for what the device computes.

On a GPU torch itself raises where something synchronises; elsewhere the `meta` device stands in,
whose tensors have no values that could be read.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import pytest
import torch
from watching import session, watched

pytestmark = pytest.mark.gpu
GPU = torch.cuda.is_available()

SETUP = """
import torch
from torch import nn
model = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.ReLU(inplace=True), nn.Linear(8, 1))
model.to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
x, target = torch.ones(16, 4, device=device), torch.zeros(16, 1, device=device)
w = torch.ones(4, device=device, requires_grad=True)
"""
PROGRAMS = {
    "training": """
        for _ in range(3):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x * w), target)
            loss.backward()
            optimizer.step()
        """,
    "writes through .data": """
        for i in range(4):
            w.data -= 0.1
            w.data[i] = 2.0
            w.data.copy_(torch.ones(4, device=device))
            (w * x).sum().backward()
        """,
    "copies and views under no_grad": """
        shadow = [p.detach().clone() for p in model.parameters()]
        for _ in range(3):
            model(x).sum().backward()
            with torch.no_grad():
                for s, p in zip(shadow, model.parameters()):
                    s.mul_(0.9).add_(p, alpha=0.1)
                    p.view(-1)[:1] += 1.0
        """,
    "sums with what left the graph": """
        for _ in range(3):
            loss = model(x).mean() - model(x).detach().mean() + 0.1 * w.detach().sum()
            loss.backward()
        """,
}


@pytest.fixture
def device() -> Iterator[str]:
    if not GPU:
        yield "meta"
        return
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield "cuda"
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("program", PROGRAMS)
def test_nothing_is_read_or_waited_for(program: str, device: str) -> None:
    cells = (SETUP, textwrap.dedent(PROGRAMS[program]))
    found, recording = session(cells, {"__name__": "__main__", "device": device})
    assert recording.failure is None and recording.limits == ()
    assert len(recording.log.made) > 0 and found == []


def test_the_numbers_of_sums_are_not_asked_for_while_a_cell_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def read(_: torch.Tensor) -> bool:
        raise AssertionError("a number was read")

    monkeypatch.setattr(torch.Tensor, "__bool__", read)
    text = SETUP.replace("model.to(device)", "device = 'cpu'")
    recording, _ = watched(text + textwrap.dedent(PROGRAMS["sums with what left the graph"]))
    assert recording.failure is None and recording.suspicion.cuts.cuts
