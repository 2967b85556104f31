"""No claim without its evidence: a section that needs a fact is not told without it."""

from __future__ import annotations

import ast
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
from knowledge.played import play

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.dataflow.cut_kinds import CutKind, cut_of
from autograd_explain.knowledge.entry import Entry, entries
from autograd_explain.model import Diagnosis, Role
from autograd_explain.render.explanation import Explanation
from autograd_explain.render.lint import problems
from autograd_explain.render.texts import LANGUAGES, accept, document, load, read

CLAIMING = [e for e in entries().values() if read(load(e.folder)["en"]).needs]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("entry", CLAIMING, ids=lambda entry: entry.name)
def test_a_claim_is_not_told_without_its_facts(entry: Entry, language: str) -> None:
    text = document(load(entry.folder), language)
    known: Mapping[str, str] = {name: value or name for name, value in entry.example.items()}
    for name, needs in text.needs.items():
        section, _, variant = name.partition(" ")
        assert text.source(section, variant, known) == text.sections[name]
        for missing in needs:
            told = text.source(section, variant, {**known, missing: ""})
            assert told != text.sections[name], f"{name} is told without {missing}"


TEXT = "---\ntitle: Title\nquestions: [a, b, c]\nneeds:\n  {needs}\n---\n## summary\nIt failed.\n\n"
CLAIM = TEXT + "## summary once\n`{x}` ran once, before the loop.\n"


@pytest.mark.parametrize(
    ("needs", "complaint"),
    [
        ("summary once: [x]", ""),
        ("summary: [x]", "claims without `needs`"),
        ("summary once: [y]", "not in EXAMPLE"),
        ("summary twice: [x]", "names no section"),
    ],
)
def test_a_claim_about_the_past_has_to_say_what_it_needs(
    tmp_path: Path, needs: str, complaint: str
) -> None:
    (tmp_path / "en.md").write_text(CLAIM.replace("{needs}", needs), "utf-8")
    found = [p for p in problems(tmp_path, {"x": "w"}) if "missing" not in p]
    assert (not found) if not complaint else any(complaint in p for p in found)


def test_what_a_section_needs_is_said_in_english(tmp_path: Path) -> None:
    for language in LANGUAGES:
        text = CLAIM.replace("{needs}", "summary once: [x]")
        (tmp_path / f"{language}.md").write_text(text, "utf-8")
    accept(tmp_path, "ja")
    assert any("`needs` belongs into en.md" in p for p in problems(tmp_path, {"x": "w"}))


# -- what was told of programs of which it is not true ----------------------------------------


def told(*cells: str, watched: bool = False) -> tuple[Diagnosis, str]:
    found = play(cells, watched=watched).diagnosis
    assert found is not None
    shown = Explanation(found).to_dict()
    return found, f"{shown['headline']}\n{shown['explanation']}"


NET = "import torch\nfrom torch import nn\ntorch.manual_seed(0)\nnet = nn.Linear(3, 3)\n"
OF_AN_EARLIER_ROUND = (
    "for epoch in range(2):\n"
    "    h = net(torch.ones(1, 3))\n"
    "    if epoch == 0:\n        kept = h\n"
    "    for batch in range(2 - epoch):\n"
    "        loss = (net(torch.ones(1, 3)) + (kept if epoch else 0)).sum()\n"
    "        if epoch == 0 and batch == 0:\n            loss = loss + kept.sum()\n"
    "        loss.backward()\n"
)
BEFORE_THE_LOOP = (
    "h = net(torch.ones(1, 3))\nfor batch in range(3):\n    loss = h.sum()\n    loss.backward()\n"
)


@pytest.mark.parametrize("watched", [False, True])
def test_what_an_earlier_round_made_did_not_run_once_before_the_loop(watched: bool) -> None:
    assert "ran once, before the loop" not in told(NET, OF_AN_EARLIER_ROUND, watched=watched)[1]
    assert "ran once, before the loop" in told(NET, BEFORE_THE_LOOP, watched=watched)[1]


def test_a_view_of_an_inference_tensor_was_not_made_under_inference_mode() -> None:
    made = "with torch.inference_mode():\n    raw = net(torch.ones(2, 3))\n{}flat = raw.view(-1)"
    use = "w = torch.ones(6, requires_grad=True)\n(w * flat).sum()"
    assert "made under" not in told(NET, made.format(""), use)[1]
    assert (
        "`flat` was made under `torch.inference_mode()`" in told(NET, made.format("    "), use)[1]
    )


SETTER = (
    "class Scaled(nn.Module):\n"
    "    def __init__(self):\n        super().__init__()\n"
    "        self.raw = nn.Parameter(torch.ones(3))\n"
    "        self.shift = nn.Parameter(torch.zeros(3))\n        self._gain = torch.ones(3)\n"
    "    @property\n    def gain(self):\n        return self._gain\n"
    "    @gain.setter\n    def gain(self, value):\n        self._gain = value.detach()\n"
    "    def forward(self, x):\n        return x * self.gain + self.shift\n"
    "model = Scaled()\nopt = torch.optim.SGD([model.raw], lr=0.1)\n"
    "for _ in range(3):\n    model.gain = model.raw * 2\n"
    "    loss = model(torch.ones(4, 3)).square().mean()\n"
    "    opt.zero_grad()\n    loss.backward()\n    opt.step()\n"
)


def test_what_a_setter_cut_off_is_still_part_of_the_model() -> None:
    found, text = told(NET, SETTER, watched=True)
    assert "model" in text and "no longer part" not in text
    assert found.finding.cause in ("silent_cut", "optimizer_misses_parameters")


def test_a_saved_view_has_the_shape_of_the_tensor_that_is_named() -> None:
    saved = "x = torch.ones(2, 3, requires_grad=True)\nloss = (x @ wide.t()).sum()\n"
    wide = "wide = torch.ones(4, 3, requires_grad=True)\n"
    write = "with torch.no_grad():\n    wide += 1\nloss.backward()"
    fact = told(NET + wide, saved + write)[0].finding.tensor(Role.CULPRIT)
    assert fact is not None
    assert (fact.names[0], fact.shape, fact.is_leaf) == ("wide", (4, 3), True)


class Space:
    """Stands for a class of another library."""

    __module__ = "spaces.box"

    def sample(self) -> float:
        return random.random()


Space.sample.__module__ = "spaces.box"


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (Space().sample, None),
        (torch.distributions.Normal(0.0, 1.0).sample, CutKind.SAMPLE),
    ],
)
def test_a_name_of_torchs_is_no_operation_of_torchs(function: Any, kind: CutKind | None) -> None:
    call = ast.parse("space.sample()", mode="eval").body
    slicer = mock.Mock(value=lambda spot: function)
    assert cut_of(slicer, ExprAt(mock.Mock(), call)) is kind


def test_a_step_that_may_never_run_is_not_named() -> None:
    program = (
        "opt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "scheduler = torch.optim.lr_scheduler.StepLR(opt, 1)\n"
    )
    elsewhere = "scheduler.step()\ndef unused():\n    opt.step()\n"
    here = "scheduler.step()\nopt.step()\n"
    assert "opt.step()" not in told(NET + program, elsewhere)[1]
    assert "steps before `opt.step()`" in told(NET + program, here)[1]


def test_zeroing_after_a_backward_does_not_come_before_the_first_one() -> None:
    before = "w = torch.ones(3, requires_grad=True)\nw.grad.zero_()"
    backward = "net(torch.ones(1, 3)).sum().backward()\n"
    after = before.replace("w.grad", backward + "w.grad")
    assert "comes before the first backward" in told(NET, before)[1]
    assert "comes before the first backward" not in told(NET, after)[1]
