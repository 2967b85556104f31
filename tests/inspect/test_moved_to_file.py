"""A class that moves from a cell to a file beside the notebook changes the places and no more."""

from __future__ import annotations

import ast
import builtins
import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from notebook import cells_of
from sessions import Ran, run_in_session

from autograd_explain.knowledge.entry import entries

BANK = """\
class Bank:
    def __init__(self):
        self.rows = []

    def push(self, row):
        self.rows.append(row)
"""
USE = """\
bank = Bank()
bank.push(torch.zeros(3))
for step in range(3):
    h = (w * bank.rows[-1] + 1).tanh()
    bank.push(h)
    h.sum().backward()
"""


def start(folder: Path) -> str:
    return f"import sys, torch\nsys.path.insert(0, {str(folder)!r})\n"


LEAF = "w = torch.ones(3, requires_grad=True)\n"


def changed_lines(edit: dict[str, Any]) -> list[str]:
    old, new = edit["old_source"].splitlines(), edit["new_source"].splitlines()
    return [d for d in difflib.ndiff(old, new) if d[:1] in "+-"]


def told(ran: Ran) -> list[Any]:
    """All that is said but for where."""
    assert not ran.trouble
    return [
        {
            "cause": report.told["id"],
            "names": [(t["role"], t["names"]) for t in report.told["tensors"]],
            "events": [
                (e["what"], e["op"], e["certainty"], e["place"] and e["place"]["source"])
                for e in report.told["events"]
                if "inside" not in e
            ],
            "rewrites": [
                (r["title"], r["outcome"], [changed_lines(e) for e in r["edits"]])
                for r in report.told["rewrites"]
            ],
        }
        for report in ran.reports
    ]


def test_a_class_that_a_file_has_replaced_is_not_edited(tmp_path: Path) -> None:
    (tmp_path / "banks.py").write_text(BANK)
    cells = [start(tmp_path) + LEAF, BANK, "from banks import Bank", USE]
    (report,) = run_in_session(cells, watched=False).reports
    assert report.told["id"] == "second_backward"
    (edit,) = report.told["rewrites"][0]["edits"]
    assert (edit["cell"], Path(edit["file"]).name) == (None, "banks.py")
    assert changed_lines(edit) == [
        "-         self.rows.append(row)",
        "+         self.rows.append(row.detach())",
    ]


def test_a_class_defined_again_while_its_object_lives(tmp_path: Path) -> None:
    """The object is of the older class: that one is mended."""
    (tmp_path / "banks.py").write_text(BANK)
    made, use = USE.split("\n", 1)
    cells = [start(tmp_path) + LEAF, BANK, made, "from banks import Bank", use]
    (report,) = run_in_session(cells, watched=False).reports
    edited = [(e["cell"], e["file"]) for r in report.told["rewrites"] for e in r["edits"]]
    assert (None, str(tmp_path / "banks.py")) not in edited


OPERATORS = """\
import torch

def partial(u, x):
    return torch.autograd.grad(u, x, torch.ones_like(u), create_graph=True)[0]

def second(u, x):
    first = partial(u, x)
    return torch.autograd.grad(first, x, torch.ones_like(first))[0]

def residual(u, x):
    return partial(u, x) - second(u, x)
"""


def test_what_a_file_names_and_the_cells_do_not_is_followed(tmp_path: Path) -> None:
    """No function of the file runs any more when the error is raised."""
    (tmp_path / "diffops.py").write_text(OPERATORS)
    cells = [
        start(tmp_path) + "from diffops import residual\nnet = torch.nn.Linear(1, 1)",
        "x = torch.rand(4, 1, requires_grad=True)\nfor _ in range(2):\n"
        "    loss = residual(net(x).tanh(), x).square().mean()\n    loss.backward()",
    ]
    (report,) = run_in_session(cells, watched=False).reports
    (edit,) = report.told["rewrites"][0]["edits"]
    assert Path(edit["file"]).name == "diffops.py"
    assert changed_lines(edit)[1].endswith("torch.ones_like(first), create_graph=True)[0]")


CLIP = """\
LIMIT = 1.0

def clip(weights):
    weights.clamp_(-LIMIT, LIMIT)

class Table:
    def __init__(self, scale):
        self.scale, self.rows = scale, {}

    def row(self, n):
        if n not in self.rows:
            self.rows[n] = self.scale * torch.arange(n)
        return self.rows[n]
"""
WRITES = """\
def step(w):
    y = w.exp()
    clip(y)
    return y.sum()
step(w).backward()
"""
KEEPS = """\
def step(table):
    return table.row(3).exp().sum()
table = Table(w)
for _ in range(2):
    step(table).backward()
"""


@pytest.mark.parametrize(
    ("use", "what", "call"), [(WRITES, "changed", "clip(y)"), (KEEPS, "cause", "table.row(3)")]
)
def test_the_cells_line_that_called_stands_behind_the_files(
    use: str, what: str, call: str, tmp_path: Path
) -> None:
    (tmp_path / "clipping.py").write_text("import torch\n" + CLIP)
    cells = [start(tmp_path) + LEAF + "from clipping import Table, clip", use]
    (report,) = run_in_session(cells, watched=False).reports
    inner, outer = [e for e in report.told["events"] if e["what"] == what]
    assert Path(inner["place"]["file"]).name == "clipping.py" and outer["place"]["cell"] == 2
    assert call in outer["place"]["source"] and outer["inside"] == inner["place"]
    assert inner["chain"][-1] == outer["place"]


def moved(cells: Sequence[str], module: str) -> tuple[list[str], str]:
    """The cells with the classes at their top level imported from a module, and its text."""
    imports, classes, rest = [], [], []
    for cell in cells:
        tree, lines = ast.parse(cell), cell.splitlines(keepends=True)
        for node in reversed(tree.body):
            text = "".join(lines[node.lineno - 1 : node.end_lineno])
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                imports.append(text)
            elif isinstance(node, ast.ClassDef):
                classes.insert(0, text)
                lines[node.lineno - 1 : node.end_lineno] = [f"from {module} import {node.name}\n"]
        rest.append("".join(lines))
    return rest, "".join(imports) + "".join(classes)


def stands_alone(text: str) -> bool:
    """Whether a module of this text reads no name that only a cell has."""
    tree = ast.parse(text)
    names = [n for n in ast.walk(tree) if isinstance(n, ast.Name)]
    known = {n.id for n in names if not isinstance(n.ctx, ast.Load)} | set(dir(builtins))
    known |= {a.arg for a in ast.walk(tree) if isinstance(a, ast.arg)}
    known |= {a.asname or a.name.split(".")[0] for n in ast.walk(tree)
              if isinstance(n, (ast.Import, ast.ImportFrom)) for a in n.names}  # fmt: skip
    known |= {n.name for n in ast.walk(tree) if isinstance(n, (ast.ClassDef, ast.FunctionDef))}
    return {n.id for n in names} <= known


def moves(cells: Sequence[str]) -> bool:
    _, text = moved(cells, "moved")
    return "class " in text and stands_alone(text)


#: Causes whose own case holds a class that the report is about.
CASES = (
    "deepcopy_non_leaf", "function_gradients", "function_in_transform", "function_keyword",
    "function_old_style", "gradient_of_wrong_shape", "numpy_needs_detach",
)  # fmt: skip
#: Those that nothing but a watched session shows.
SILENT = ("plain_list_of_layers", "silent_cut")


@pytest.mark.parametrize("cause", (*CASES, *SILENT))
def test_only_the_places_differ(cause: str, tmp_path: Path) -> None:
    cells = cells_of((entries()[cause].folder / "case.py").read_text("utf-8"))
    assert moves(cells)
    apart, text = moved(cells, "moved")
    (tmp_path / "moved.py").write_text(text)
    here, there = (
        run_in_session([start(tmp_path), *c], watched=cause in SILENT) for c in (cells, apart)
    )
    assert here.reports and told(there) == told(here)


def test_outcomes_are_those_of_the_cell(tmp_path: Path) -> None:
    (tmp_path / "banks.py").write_text(BANK)
    first = start(tmp_path) + LEAF
    here = run_in_session([first, BANK, USE], watched=True)
    there = run_in_session([first, "from banks import Bank", USE], watched=True)
    assert told(there) == told(here)


def test_of_two_classes_alike_the_one_of_the_object_is_edited() -> None:
    first = "import torch\n" + LEAF
    cells = [first, BANK.replace("Bank", "Log"), BANK, "log = Log()\n" + USE]
    (report,) = run_in_session(cells, watched=False).reports
    assert {e["cell"] for r in report.told["rewrites"] for e in r["edits"]} == {3}
