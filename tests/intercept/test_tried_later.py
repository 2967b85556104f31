"""A failure that was not watched: its rewrites are tried after the report, where that is wanted."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from notebook import kernel_shell, shell_with_extension

import autograd_explain

MADE = "import torch\nw = torch.randn(3, requires_grad=True)"
FAILS = "y = w.exp()\ny += 1\ny.sum().backward()"


@pytest.fixture
def shell() -> Iterator[Any]:
    with shell_with_extension() as shell:
        shell.run_line_magic("config", "AutogradExplain.verify = 'always'")
        yield shell


def outcomes() -> list[str]:
    found = autograd_explain.last()
    assert found is not None
    return [rewrite["outcome"] for rewrite in found.to_dict()["rewrites"]]


def test_the_cells_are_run_again(shell: Any) -> None:
    shell.run_cell(MADE, store_history=True)
    before = shell.user_ns["w"].clone()
    shell.run_cell(FAILS, store_history=True)
    assert outcomes()[0] == "verified"
    assert shell.user_ns["w"].equal(before)
    assert shell.user_ns["w"].grad is None


def test_not_where_they_are_slow(shell: Any) -> None:
    shell.run_line_magic("config", "AutogradExplain.budget = 1")
    shell.run_cell(f"import time\ntime.sleep(0.5)\n{MADE}", store_history=True)
    started = time.monotonic()
    shell.run_cell(FAILS, store_history=True)
    assert set(outcomes()) == {"not_tried"}
    assert time.monotonic() - started < 5


def test_the_cell_that_loads_is_one_of_them() -> None:
    with kernel_shell() as shell:
        load = "%load_ext autograd_explain\n%config AutogradExplain.verify = 'always'"
        for cell in (load, MADE, FAILS):
            shell.run_cell(cell, store_history=True)
        assert outcomes()[0] == "verified"


def test_not_after_cells_of_which_nothing_is_known() -> None:
    with kernel_shell() as shell:
        load = "%load_ext autograd_explain\n%config AutogradExplain.verify = 'always'"
        for cell in (MADE, load, FAILS):
            shell.run_cell(cell, store_history=True)
        assert set(outcomes()) == {"not_tried"}


def test_not_unless_it_is_wanted() -> None:
    with shell_with_extension() as shell:
        shell.run_cell(MADE, store_history=True)
        shell.run_cell(FAILS, store_history=True)
        assert set(outcomes()) == {"not_tried"}
