"""What a watched session shows of a search, in three languages."""

from __future__ import annotations

import pytest
from notebook import shell_with_extension
from sessions import run_in_session

import autograd_explain
from autograd_explain import pipeline
from autograd_explain.render.texts import LANGUAGES

CELL = """%%autograd_check
import torch
w = torch.randn(3, requires_grad=True)
y = w.exp()
y += 1
y.sum().backward()
"""


def test_a_report_tells_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "propose", lambda *_: ())
    with shell_with_extension() as shell:
        shell.run_cell(CELL, store_history=True)
        found = autograd_explain.last()
        assert found is not None
        titles = set()
        for language in LANGUAGES:
            first = found.in_language(language).to_dict()["rewrites"][0]
            assert first["outcome"] == "verified"
            assert "`y" in first["title"] or "`w" in first["title"]
            titles.add(first["title"])
        assert len(titles) == len(LANGUAGES)


def test_without_verification_nothing_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "propose", lambda *_: ())
    with shell_with_extension() as shell:
        shell.run_line_magic("config", "AutogradExplain.verify = False")
        shell.run_cell(CELL, store_history=True)
        found = autograd_explain.last()
        assert found is not None
        assert found.to_dict()["rewrites"] == []


@pytest.mark.parametrize("read", ["{n: b[k].grad for k, n in enumerate('pq')}", "Slope()(b * 1.0)"])
def test_what_only_silences_a_warning_is_no_repair(read):
    """Every other gradient is as it was, so it agrees with the reference: nothing is shown."""
    first = """import torch
b = torch.ones(2, requires_grad=True)
(3 * b).sum().backward()
class Slope:
    def __call__(self, x):
        inner = x.clone().requires_grad_(True)
        inner.exp().sum().backward()
        return x.grad"""
    reports = run_in_session([first, f"read = {read}"], watched=True).reports
    told = [rewrite["edits"][0]["new_source"] for r in reports for rewrite in r.told["rewrites"]]
    assert reports
    assert not any("no_grad" in text or "detach()" in text for text in told), told


ACTOR = """%%autograd_check
import torch
torch.manual_seed(0)
actor, critic = torch.nn.Linear(3, 2), torch.nn.Linear(5, 1)
first, second = (torch.optim.Adam(m.parameters()) for m in (critic, actor))
x = torch.randn(4, 3)
for _ in range(2):
    with torch.no_grad():
        action = actor(x).tanh()
    loss = critic(torch.cat([x, action], 1)).square().mean()
    first.zero_grad()
    loss.backward()
    first.step()
    value = -critic(torch.cat([x, action], 1)).mean()
    second.zero_grad()
    value.backward()
    second.step()
"""


def test_a_silent_fault_may_take_two_edits() -> None:
    """What is recorded again is on the way of two losses, the first of which frees it."""
    with shell_with_extension() as shell:
        shell.run_line_magic("config", "AutogradExplain.budget = 120")
        shell.run_cell(ACTOR, store_history=True)
        found = autograd_explain.last()
        assert found is not None
        data = found.to_dict()
        first = data["rewrites"][0]
        assert (data["id"], first["outcome"]) == ("silent_cut", "runs")
        assert "action = actor(x).tanh()\n    value" in first["edits"][0]["new_source"]
