"""A watched session tells what went wrong although nothing was raised."""

from __future__ import annotations

import pytest
from knowledge.played import Played, play

from autograd_explain.knowledge.entry import entries
from autograd_explain.model import Certainty, Kind, Outcome, What
from autograd_explain.render.explanation import Explanation
from autograd_explain.render.texts import load

#: A write through `.data` after the product has saved d: silently 1 instead of 4 for w2.
THROUGH_DATA = (
    "import torch\nx = torch.tensor([[1., 2.]])\n"
    "w1 = torch.tensor([[2.], [1.]], requires_grad=True)\n"
    "w2 = torch.tensor([3.], requires_grad=True)",
    "d = torch.matmul(x, w1)\nd_ = d.data\nf = torch.matmul(d, w2)\nd_[:] = 1\nf.backward()",
)


@pytest.fixture(scope="module")
def through_data() -> Played:
    return play(THROUGH_DATA, watched=True, verify=True)


def test_both_places_are_observed(through_data: Played) -> None:
    diagnosis = through_data.diagnosis
    assert diagnosis is not None and diagnosis.kind is Kind.SILENT and diagnosis.message == ""
    saved, changed = (diagnosis.finding.event(w) for w in (What.SAVED, What.CHANGED))
    assert saved is not None and changed is not None
    for event, line in ((saved, 3), (changed, 4)):
        assert event.place is not None and (event.place.cell, event.place.line) == (2, line)
        assert event.certainty is Certainty.OBSERVED
    assert diagnosis.finding.tensors[0].names[0] == "d"


def test_the_gradient_is_shown_beside_the_right_one(through_data: Played) -> None:
    diagnosis = through_data.diagnosis
    assert diagnosis is not None
    facts = diagnosis.finding.facts
    assert (facts["gradient"], facts["wrong"], facts["right"]) == ("w2.grad", "1", "4")
    texts = load(entries()["silent_overwrite"].folder)
    for language in ("en", "ja", "zh"):
        text = Explanation(diagnosis, language, "full", texts).to_markdown()
        assert "`w2.grad`" in text and "`4`" in text and "d_[:] = 1" in text


def test_the_rewrite_is_verified(through_data: Played) -> None:
    diagnosis = through_data.diagnosis
    assert diagnosis is not None and through_data.trouble == ""
    first = diagnosis.rewrites[0]
    assert (first.fix, first.outcome) == ("clone_alias", Outcome.VERIFIED)
    assert "d_ = d.detach().clone()" in first.edits[0].new_source


def test_what_may_be_meant_is_one_line() -> None:
    cells = (
        "import torch\nfrom torch import nn\nbody, head = nn.Linear(3, 3), nn.Linear(3, 1)\n"
        "opt = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)",
        "for _ in range(2):\n    with torch.no_grad():\n        h = body(torch.ones(1, 3))\n"
        "    opt.zero_grad()\n    head(h).sum().backward()\n    opt.step()",
    )
    found = play(cells, watched=True)
    assert found.diagnosis is None and found.trouble == ""
    assert [line for line in found.output.splitlines() if "worth a look" in line]
