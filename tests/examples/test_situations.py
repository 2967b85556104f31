"""Every situation of the example notebooks: cause, tensor, lines, versions, and the rewrite.

The metadata of a cell that goes wrong says what the report must hold: `tensor` is among the
culprit's names, `line` the statement to change (`cell`, where it stands in another one), `saved`
the statement that saved the value, `versions` the saved and the current one.  The first rewrite is
applied and the notebook run from the top; `values` are expressions and their values then.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
import pytest
import torch
from knowledge.played import claims
from notebook import Notebook, captured, fresh_torch, shell_with_extension

from autograd_explain import Explanation

NOTEBOOKS = sorted((Path(__file__).parents[2] / "examples").glob("*.ipynb"))


@dataclass(frozen=True)
class Situation:
    """A cell that goes wrong: its number, what its metadata says, and the cells up to it."""

    notebook: str
    cell: int
    expected: Mapping[str, Any]
    cells: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.notebook}-{self.cell}"


def _situations(path: Path) -> list[Situation]:
    book = nbformat.read(path, as_version=4)
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    sources = [cell.source for cell in code]
    return [
        Situation(path.stem, n, cell.metadata["autograd_explain"], tuple(sources[:n]))
        for n, cell in enumerate(code, 1)
        if "autograd_explain" in cell.metadata
    ]


SITUATIONS = [s for path in NOTEBOOKS for s in _situations(path)]


@cache
def reports(notebook: str) -> Mapping[int, Mapping[str, Any]]:
    """The report after each cell of a notebook that has one."""
    last = [s for s in SITUATIONS if s.notebook == notebook][-1]
    found = {}
    with shell_with_extension() as shell, claims() as seen, captured():
        shell.run_line_magic("config", "AutogradExplain.record_next_run = False")
        for number, source in enumerate(last.cells, 1):
            before = len(seen.shown)
            shell.run_cell(source, store_history=True)
            shown = [s for s in seen.shown[before:] if isinstance(s, Explanation)]
            if shown:
                found[number] = shown[-1].to_dict()
    return found


@pytest.fixture(params=SITUATIONS, ids=str)
def situation(request: pytest.FixtureRequest) -> Situation:
    found: Situation = request.param
    return found


@pytest.fixture
def report(situation: Situation) -> Mapping[str, Any]:
    return reports(situation.notebook)[situation.cell]


def test_cause_tensor_and_versions(situation: Situation, report: Mapping[str, Any]) -> None:
    expected = situation.expected
    assert report["id"] == expected["cause"]
    (culprit, *_) = [t for t in report["tensors"] if t["role"] == "culprit"]
    if "tensor" in expected:
        assert expected["tensor"] in culprit["names"]
    if "versions" in expected:
        versions = [culprit["saved_version"], culprit["current_version"]]
        assert versions == expected["versions"]


def test_lines(situation: Situation, report: Mapping[str, Any]) -> None:
    expected = situation.expected
    guilty = place_of(report, "changed", "cause", "created")
    if "line" in expected:
        assert guilty == (expected.get("cell", situation.cell), expected["line"])
    if "saved" in expected:
        saved = place_of(report, "saved")
        assert saved == (expected.get("cell", situation.cell), expected["saved"])


def test_first_rewrite(situation: Situation, report: Mapping[str, Any]) -> None:
    """Applied, the notebook runs from the top with the values that are meant."""
    rewrite, cells = report["rewrites"][0], dict(enumerate(situation.cells, 1))
    if "outcome" in situation.expected:
        assert rewrite["outcome"] == situation.expected["outcome"]
    for edit in rewrite["edits"]:
        assert cells[edit["cell"]] == edit["old_source"]
        cells[edit["cell"]] = edit["new_source"]
    namespace = from_the_top(list(cells.values()))
    for expression, value in situation.expected.get("values", {}).items():
        found = eval(expression, namespace)
        if isinstance(found, torch.Tensor):
            wanted = torch.tensor(value, dtype=found.dtype)
            torch.testing.assert_close(found.detach(), wanted, rtol=1e-3, atol=1e-4)
        else:
            assert found == value, expression


def place_of(report: Mapping[str, Any], *kinds: str) -> tuple[int, int] | None:
    """Cell and line of the report's first event of these kinds."""
    for kind in kinds:
        for event in report["events"]:
            if event["what"] == kind and event["place"] is not None:
                return event["place"]["cell"], event["place"]["line"]
    return None


def from_the_top(cells: Sequence[str]) -> dict[str, Any]:
    """Run the cells without the extension; only the last one has to succeed, without a warning."""
    notebook = Notebook()
    with fresh_torch(), captured():
        for cell in cells[:-1]:
            with warnings.catch_warnings(), contextlib.suppress(Exception):
                warnings.simplefilter("ignore")
                notebook.run(_without_magics(cell))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            notebook.run(_without_magics(cells[-1]))
    return notebook.namespace


def _without_magics(cell: str) -> str:
    return "\n".join(line for line in cell.split("\n") if not line.startswith("%"))
