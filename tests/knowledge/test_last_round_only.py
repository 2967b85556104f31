"""How the rounds that were left out come to count."""

from __future__ import annotations

import pytest
from knowledge.played import edited, play

HEAD = (
    "import torch\nfrom torch import nn\ntorch.manual_seed(0)\n"
    "net = nn.Linear(3, 3)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
    "xs = torch.randn(4, 2, 3)\n"
)
LOOP = "for x in xs:\n    loss = net(x).square().mean()\n"
END = "opt.zero_grad()\nloss.backward()\nopt.step()"


@pytest.mark.parametrize(
    ("cell", "first", "second"),
    [
        (
            LOOP + END,
            "new_total = 0\nfor x in xs:\n    loss = net(x).square().mean()\n"
            "    new_total = new_total + loss\nopt.zero_grad()\nnew_total.backward()\nopt.step()",
            LOOP + "    opt.zero_grad()\n    loss.backward()\n    opt.step()",
        ),
        (
            LOOP + "loss = loss / len(xs)\n" + END,
            "new_total = 0\nfor x in xs:\n    loss = net(x).square().mean()\n"
            "    new_total = new_total + loss\nloss = new_total / len(xs)\n" + END,
            None,
        ),
        (
            "total = 0\n" + LOOP + "    total += loss\n" + END,
            "total = 0\n" + LOOP + "    total += loss\n" + END.replace("loss", "total"),
            "total = 0\n" + LOOP + "    total += loss\n    opt.zero_grad()\n    loss.backward()\n"
            "    opt.step()",
        ),
        (
            LOOP.replace("\n ", "\n    opt.zero_grad()\n ", 1) + "loss.backward()\nopt.step()",
            LOOP.replace("\n ", "\n    opt.zero_grad()\n ", 1)
            + "    loss.backward()\n    opt.step()",
            "new_total = 0\n"
            + LOOP.replace("\n ", "\n    opt.zero_grad()\n ", 1)
            + "    new_total = new_total + loss\nnew_total.backward()\nopt.step()",
        ),
    ],
    ids=["terms", "a mean", "a sum that nobody uses", "batches"],
)
def test_the_rewrites(cell: str, first: str, second: str | None) -> None:
    found = play((HEAD, cell), watched=True)
    assert found.trouble == "" and found.diagnosis is not None
    assert found.diagnosis.finding.cause == "last_round_only"
    texts = [edited((HEAD, cell), each)[1] for each in found.diagnosis.rewrites]
    assert texts == [text for text in (first, second) if text is not None]
