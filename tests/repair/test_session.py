"""What a watched session shows of a search, in three languages."""

from __future__ import annotations

import pytest
from notebook import shell_with_extension

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
