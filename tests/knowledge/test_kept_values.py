"""Copies of what is kept under a second name and written in place."""

from __future__ import annotations

import pytest
from knowledge.played import edited, play

from autograd_explain.knowledge.entry import entries
from autograd_explain.model import What
from autograd_explain.render.explanation import Explanation
from autograd_explain.render.texts import load

HEAD = (
    "import torch\nimport torch.nn.functional as F\nfrom torch import nn\ntorch.manual_seed(0)\n"
    "a, b = nn.Linear(3, 3), nn.Linear(3, 3)\nact = nn.ReLU(inplace=True)\n"
    "body = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(3, 3))\n"
    "opt = torch.optim.SGD([*a.parameters(), *b.parameters()], lr=0.1)\nx = torch.randn(4, 3)"
)
END = "opt.zero_grad()\nloss.backward()\nopt.step()"


@pytest.mark.parametrize(
    ("function", "line", "first", "second"),
    [
        (
            "def run(x):\n    feats = []\n    x = a(x)\n    feats.append(x)\n    x = act(x)\n"
            "    return b(x), feats[0]",
            5,
            ("feats.append(x)", "feats.append(x.clone())"),
            ("act = nn.ReLU(inplace=True)", "act = nn.ReLU()"),
        ),
        (
            "def run(x):\n    h = a(x)\n    skip = h\n    h *= 0.5\n    return b(h), skip",
            4,
            ("skip = h", "skip = h.clone()"),
            ("h *= 0.5", "h = h * 0.5"),
        ),
        (
            "def run(x):\n    h = a(x)\n    return body(h), h",
            3,
            ("body(h), h", "body(h.clone()), h.clone()"),
            ("nn.Sequential(nn.ReLU(inplace=True)", "nn.Sequential(nn.ReLU()"),
        ),
    ],
    ids=["a list", "a name", "an argument"],
)
def test_the_rewrites(
    function: str, line: int, first: tuple[str, str], second: tuple[str, str]
) -> None:
    loss = "out, kept = run(x)\nloss = out.mean() + kept.square().mean()\n" + END
    cells = (HEAD, function, loss)
    found = play(cells, watched=True)
    assert found.trouble == "" and found.diagnosis is not None
    finding = found.diagnosis.finding
    changed = finding.event(What.CHANGED)
    assert finding.cause == "silent_overwrite" and changed is not None
    assert changed.place is not None and changed.place.line == line
    texts = ["\n".join(edited(cells, each)) for each in found.diagnosis.rewrites]
    wanted = ["\n".join(cells).replace(*each) for each in (first, second)]
    assert texts == wanted
    sections = load(entries()["silent_overwrite"].folder)
    for language in ("en", "ja", "zh"):
        text = Explanation(found.diagnosis, language, "full", sections).to_markdown()
        assert changed.place.source.strip() in text


def test_a_copy_of_the_gradient_that_is_kept() -> None:
    step = (
        "state = []\nfor i in range(3):\n    a.zero_grad(set_to_none=False)\n"
        "    a(x).sum().backward()\n    if not state:\n        state.append(a.bias.grad)\n"
        "    state[0].add_(a.bias.grad)"
    )
    found = play((HEAD, step), watched=True)
    assert found.trouble == "" and found.diagnosis is not None
    assert found.diagnosis.finding.variant == "gradient"
    (rewrite,) = found.diagnosis.rewrites
    wanted = step.replace("append(a.bias.grad)", "append(a.bias.grad.clone())")
    assert edited((HEAD, step), rewrite) == (HEAD, wanted)
