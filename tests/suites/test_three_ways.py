"""Small programs in three ways, and what the comparison must find and must pass over."""

from __future__ import annotations

import random
from pathlib import Path

import program_suite as programs
import pytest
import three_ways
import torch_suite

TRAINING = """
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters())
# %%
losses = []
for step in range(3):
    optimizer.zero_grad()
    loss = model(torch.randn(5, 4)).square().mean()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    losses.append(loss.item())
    print(step, loss.item())
# %%
with torch.no_grad():
    for p in model.parameters():
        p -= 0.1 * p.grad
model.eval()
out = model(torch.randn(2, 4))
"""
ADVERSARIES = """
import torch
torch.manual_seed(0)
G, D = torch.nn.Linear(2, 3), torch.nn.Linear(3, 1)
g, d = torch.optim.SGD(G.parameters(), 0.1), torch.optim.SGD(D.parameters(), 0.1)
for _ in range(3):
    fake = G(torch.randn(4, 2))
    d.zero_grad()
    (D(fake.detach()).mean() - D(torch.randn(4, 3)).mean()).backward()
    d.step()
    for p in D.parameters():
        p.data.clamp_(-0.1, 0.1)
    g.zero_grad()
    (-D(fake)).mean().backward()
    g.step()
"""
PENALTY = """
import numpy as np
import random
import torch
x = torch.linspace(0, 1, 6, dtype=torch.float64).requires_grad_()
y = (x ** 3).sum()
slope, = torch.autograd.grad(y, x, create_graph=True)
slope.square().sum().backward()
class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x ** 3
    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        return 3 * x ** 2 * grad
checked = torch.autograd.gradcheck(Cube.apply, x)
drawn = random.random(), np.random.rand(2), torch.rand(2)
"""
WARNED = """
import torch
m = torch.nn.Linear(2, 2)
m.register_full_backward_hook(lambda module, given, grads: None)
for _ in range(2):
    m(torch.ones(1, 2)).sum().backward()
"""
CORRECT = {"training": TRAINING, "adversaries": ADVERSARIES, "penalty": PENALTY}
OVERWRITTEN = """
import torch
w = torch.ones(3, requires_grad=True)
x = torch.ones(3)
y = (w * x).sum()
x.data.mul_(5)
y.backward()
"""


@pytest.fixture(scope="module", autouse=True)
def _loaded() -> None:
    three_ways.preload()


def written(folder: Path, text: str) -> Path:
    path = folder / "program.py"
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", CORRECT)
def test_a_correct_program_is_left_alone(name: str, tmp_path: Path) -> None:
    row = programs.compare(written(tmp_path, CORRECT[name]))
    assert row.error == ""
    assert row.unsteady == ()
    assert row.clean, (row.differences, row.said)
    assert row.seconds.keys() == {"plain", "hook", "check"}


def test_a_warning_of_torchs_keeps_its_place(tmp_path: Path) -> None:
    row = programs.compare(written(tmp_path, WARNED))
    assert not any(row.differences.values()), row.differences
    assert [len(lines) for lines in row.said.values()] == [1, 1]  # it is explained


def test_what_a_guest_moves_is_found(tmp_path: Path) -> None:
    text = """
import random, warnings
import torch
if "autograd_explain" in get_ipython().extension_manager.loaded:
    x = torch.ones(2) + 1
    print("seen")
    warnings.warn("seen")
    random.random()
    torch.rand(1)
    torch.set_default_dtype(torch.float64)
else:
    x = torch.ones(2)
"""
    row = programs.compare(written(tmp_path, text))
    assert row.error == ""
    found = row.differences["hook"]
    told = [line.split(": ")[:2] for line in found]
    for expected in ("values: x", "state: random", "state: torch random", "state: default dtype"):
        assert expected.split(": ") in told
    assert {"printed", "warned"} <= {line[0] for line in told}


def test_what_differs_between_two_plain_runs_is_not_compared(tmp_path: Path) -> None:
    text = "import time\nnow = time.time_ns()\nprint(now)\nkept = 1\n"
    row = programs.compare(written(tmp_path, text))
    assert {line.partition(":")[0] for line in row.unsteady} == {"printed", "values"}
    assert row.clean


def test_a_report_counts(tmp_path: Path) -> None:
    row = programs.compare(written(tmp_path, OVERWRITTEN))
    assert row.said["hook"] == ()
    assert [line for line in row.said["check"] if "silent silent_overwrite" in line]
    assert not any(row.differences.values())


def test_an_error_ends_the_program(tmp_path: Path) -> None:
    row = programs.compare(written(tmp_path, "1 / 0\n# %%\nx = 1\n"))
    assert row.error == "ZeroDivisionError: division by zero"
    assert row.clean
    assert programs.table([row]).startswith("1 programs, 0 run to their end")


def test_a_program_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    row = programs.compare(written(tmp_path, "while True: pass"), limit=2)
    assert row.differences == {"plain": ("plain took longer than 2 s",)}
    assert not row.clean


def test_notebooks_and_scripts_are_cut_into_cells(tmp_path: Path) -> None:
    path = tmp_path / "a.ipynb"
    path.write_text(
        '{"cells": [{"cell_type": "markdown", "source": ["# no"]},'
        ' {"cell_type": "code", "source": ["x = 1\\n", "y = 2"]}]}'
    )
    assert programs.cells_of(path) == ["x = 1\ny = 2"]
    assert len(programs.cells_of(written(tmp_path, TRAINING))) == 3


TESTS = """
import sys
import unittest
import warnings
import torch

class TestSome(unittest.TestCase):
    def test_same(self):
        x = torch.ones(2, requires_grad=True)
        (x * x).sum().backward()
        self.assertEqual(x.grad.tolist(), [2, 2])

    def test_watched(self):
        self.assertEqual(torch._C._len_torch_function_stack(), 0)

    def test_skipped(self):
        self.skipTest("for a reason")

    def test_refused(self):
        x = torch.ones(2)
        with self.assertRaises(RuntimeError):
            x.sum().backward()
"""


def test_tests_of_a_file_are_compared_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "test_some.py"
    path.write_text(TESTS)
    tests = list(torch_suite.tests_of(torch_suite.load(path)))
    rows = {t.id().rpartition(".")[2]: torch_suite.compare(t, 60) for t in tests}
    assert [rows[n].outcome for n in ("test_same", "test_watched")] == ["passed", "passed"]
    assert rows["test_skipped"].outcome == "skipped: for a reason"
    assert rows["test_same"].differences == ()
    assert "AssertionError" in rows["test_watched"].differences[0]
    assert torch_suite.table(list(rows.values())).startswith(
        "4 tests (3 pass, 1 skipped), 1 differ"
    )


def test_expected_errors_are_explained(tmp_path: Path) -> None:
    path = tmp_path / "test_some.py"
    path.write_text(TESTS)
    (test,) = (t for t in torch_suite.tests_of(torch_suite.load(path)) if "refused" in t.id())
    ((message, answer, seconds),) = torch_suite.explain(test, 60)
    assert "does not require grad" in message
    assert answer == "no_grad_root" or not answer.startswith(("crash", "none", "unknown"))
    assert seconds < 30


def test_digests_are_equal_only_for_equal_values() -> None:
    import torch

    one, two = torch.zeros(2), torch.zeros(2)
    assert three_ways.digest([one]) == three_ways.digest([two])
    two[0] = -0.0
    assert three_ways.digest([one]) != three_ways.digest([two])
    assert three_ways.digest({"a": 1.0}) != three_ways.digest({"a": 1})
    before = dict(three_ways.state())
    random.random()
    assert [n for n, v in three_ways.state() if before[n] != v] == ["random"]


def test_what_the_extension_shows_is_not_the_programs_output(tmp_path: Path) -> None:
    """Neither a report, nor that nothing is wrong, nor that not all could be seen."""
    unseen = """
import torch
w = torch.ones(2, requires_grad=True)
compiled = torch.compile(lambda x: (x * 2).sum(), backend="eager")
compiled(w).backward()
print("of the program")
"""
    row = programs.compare(written(tmp_path, unseen))
    assert row.error == ""
    assert row.differences == {"hook": (), "check": ()}
    assert [line for line in row.said["check"] if line.startswith("limit: ")]
    assert not [line for line in row.said["check"] if line.startswith("report: ")]
