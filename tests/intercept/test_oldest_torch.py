"""A torch that is too old is told once, when the extension is loaded."""

import pytest
import torch
from notebook import kernel_shell

from autograd_explain.intercept.oldest_torch import too_old


@pytest.mark.parametrize(
    ("release", "old"),
    [("2.9.1+cu128", True), ("1.13.0", True), ("2.10.0", False), ("3.0", False), ("git", False)],
)
def test_releases(release, old, monkeypatch):
    monkeypatch.setattr(torch, "__version__", release)
    assert too_old() == (release if old else None)


def test_loading_says_it(monkeypatch, capsys):
    monkeypatch.setattr(torch, "__version__", "2.9.1")
    with kernel_shell() as shell:
        shell.run_line_magic("load_ext", "autograd_explain")
        said = capsys.readouterr().out
        shell.run_line_magic("load_ext", "autograd_explain")
    assert "torch 2.9.1 does not show" in said and said.count("\n") == 1
    assert "2.9.1" not in capsys.readouterr().out
