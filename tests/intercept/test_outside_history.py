"""Cells that run outside IPython's history share a number: what cannot be replayed is not tried."""

from __future__ import annotations

from pathlib import Path

import pytest
from notebook import captured, shell_with_extension

import autograd_explain
from autograd_explain.program import Program, Source
from autograd_explain.verification import told_apart

LAYER = """import torch
class Gate(torch.nn.Module):
    def forward(self, x):
        h = torch.sigmoid(x)
        h.mul_(2)
        return h
"""
FAILS = "w = torch.ones(3, requires_grad=True)\nGate()(w).sum().backward()"


@pytest.mark.parametrize(("history", "outcome"), [(False, "not_tried"), (True, "verified")])
def test_rewrites_are_not_lost(
    history: bool, outcome: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"layer_of_{outcome}"
    (tmp_path / f"{name}.py").write_text(LAYER)
    monkeypatch.syspath_prepend(str(tmp_path))
    with shell_with_extension() as shell, captured():
        for cell in ("%autograd_check on", f"import torch\nfrom {name} import Gate", FAILS):
            shell.run_cell(cell, store_history=history)
        found = autograd_explain.last()
    assert found is not None
    rewrites = found.to_dict()["rewrites"]
    assert len(rewrites) >= 2 and rewrites[0]["outcome"] == outcome


@pytest.mark.parametrize(
    ("runs", "apart"),
    [
        ([(1, "a", True), (2, "b", True)], True),
        ([(1, "a", False), (1, "b", True), (2, "c", True)], True),  # the next cell got its number
        ([(1, "a", False), (1, "a", False)], True),
        ([(1, "a", False), (1, "b", False)], False),
        ([(1, "a", True), (3, "b", False), (3, "c", False)], True),  # later than what is replayed
    ],
)
def test_runs_with_one_number(runs: list[tuple[int, str, bool]], apart: bool) -> None:
    cells = [Source(n, None, text, text, f"<{n}>", history=kept) for n, text, kept in runs]
    assert told_apart(Program(cells), 2) is apart
