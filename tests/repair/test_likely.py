"""Where nothing is run, only an edit is told that is likely to be right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from notebook import seconds_of, seconds_to_parse, shell_with_extension

import autograd_explain
from autograd_explain import pipeline
from autograd_explain.model import Confidence, Event, Finding, Role, TensorFact, What
from autograd_explain.render.texts import LANGUAGES
from autograd_explain.repair import likely

FORWARD = "import torch\nw = torch.randn(3, requires_grad=True)"
WRITTEN = "y = w.exp()\ny += 1\ny.sum().backward()"
WRITTEN_LAYER = "y = layer(torch.ones(2))\nlayer.weight.data.renorm_(2, 0, 0.1)\ny.sum().backward()"
CUT = "y = torch.tensor(3.0)\n(y + 1).backward()"


def finding(played: Any, line: int) -> Finding:
    place = played.program.cells[-1].place(line)
    return Finding("x", Confidence.PROVEN, {}, events=(Event(What.CHANGED, place),))


def test_what_is_likely_comes_first(play: Callable[..., Any]) -> None:
    played = play(FORWARD, WRITTEN)
    found = likely(finding(played, 2), played.request())
    assert "y = y + 1" in found[0].edits[0].new_source


def test_nothing_is_told_that_is_not_likely(play: Callable[..., Any]) -> None:
    played = play(FORWARD, CUT)
    assert likely(finding(played, 2), played.request()) == ()


@pytest.mark.parametrize("leaf", [True, False])
def test_an_attribute_keeps_the_leaf_that_it_holds(play: Callable[..., Any], leaf: bool) -> None:
    played = play("import torch\nlayer = torch.nn.Linear(2, 2)", WRITTEN_LAYER)
    culprit = TensorFact(Role.CULPRIT, ("layer.weight",), is_leaf=leaf, requires_grad=True)
    found = likely(replace(finding(played, 2), tensors=(culprit,)), played.request())
    texts = [rewrite.edits[0].new_source for rewrite in found]
    assert any("layer.weight = layer.weight" in text for text in texts) is not leaf


def test_of_a_long_program_the_report_does_not_wait(play: Callable[..., Any]) -> None:
    long = "\n".join(f"a{n} = torch.ones(2) * {n}" for n in range(1100))
    played = play(FORWARD, long, WRITTEN)
    request = played.request()
    found = finding(played, 2)
    told: list[Any] = []
    took = seconds_of(lambda: told.extend(likely(found, request)))
    assert took < 12 * seconds_to_parse(long)  # 3 on a quiet machine
    assert told


def test_a_report_says_that_it_was_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "propose", lambda *_: ())
    with shell_with_extension() as shell:
        shell.run_cell(f"{FORWARD}\n{WRITTEN}", store_history=True)
        found = autograd_explain.last()
        assert found is not None
        for language in LANGUAGES:
            first = found.in_language(language).to_dict()["rewrites"][0]
            assert first["outcome"] == "not_tried"
            assert "%%autograd_check" in first["outcome_reason"]
