"""Very long cells and files: what has nothing to do with a failure costs next to nothing, and the
report is the one that the same program gets without it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from notebook import captured, seconds_of, seconds_to_parse, shell_with_extension

import autograd_explain
from autograd_explain.model import Place, lines_of
from autograd_explain.program import Program, Source
from autograd_explain.rewrite.engine.draft import Draft
from autograd_explain.rewrite.engine.tree import tree_at, tree_of
from autograd_explain.set_aside import set_aside

HELPER = '''
@staticmethod
def helper_{0}(x, y=None):
    """Does nothing here."""
    total = 0
    for k in range(3):
        total += len(x) - k if y is None else y[k]  # a comment
    return total, [a for a in x if a]
'''
FLAT = "value_{0} = [k * {0} for k in range(3)]\n"
MODEL = """
import torch

class Gate(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(4, 4)

    def forward(self, x):
        h = torch.sigmoid(self.lin(x))
        h.mul_(2)
        return h
"""
USE = "model = Gate()\nout = model(torch.ones(2, 4)).sum()\nout.backward()\n"
LINES = 4000
_numbers = itertools.count()


def filled(text: str, filler: str, lines: int = LINES) -> str:
    """The text with half of the filler before it and half after."""
    half = range(lines // 2 // max(filler.count("\n"), 1))
    before, after = ("".join(filler.format(s + str(n)) for n in half) for s in ("1", "2"))
    return before + text + after


def program_of(*texts: str, stop: int = 1) -> Program:
    cells = [Source(n, None, t, t, f"<{n}>") for n, t in enumerate(texts, 1)]
    return Program(cells, stops=[(cells[-1].filename, stop)])


def test_what_no_name_joins_to_the_failure_is_set_aside() -> None:
    filler = "".join(f"a{n} = {n}\nb{n} = a{n}\n" for n in range(1000))
    text = f"{filler}c = 1; d = 2\nprint(2)\nimport os\n@os\ndef f(): return c + b7\nf()\n"
    program = program_of(text, stop=2006)
    # `c` is joined by `f`, `b7` too, `a7` by that; `d` shares its line; a call names nothing.
    assert set_aside(program, program.cells[0]) == ((1, 14), (17, 2000))
    assert set_aside(program_of(text, "f()"), program.cells[0]) == ((1, 14), (17, 2000))
    assert set_aside(program_of(text, "a9"), program.cells[0]) == (
        (1, 18),
        (21, 2000),
        (2004, 2006),  # the definition of `f` with its decorator, and its call
    )


def test_nothing_is_set_aside_without_a_question_or_of_a_short_text() -> None:
    long = FLAT * 2000
    source = Source(1, None, long, long, "<1>")
    assert set_aside(Program([source]), source) == ()
    assert set_aside(program_of("a = 1\n\n", "2"), program_of("a = 1\n\n").cells[0]) == ()


@pytest.mark.parametrize("filler", [HELPER, FLAT])
def test_an_edit_leaves_what_was_set_aside_to_the_letter(filler: str) -> None:
    text = "%time 3\n" + filled(MODEL, filler, 2000)
    python = text.replace("%time 3", "get_ipython()")
    program = Program([Source(1, None, text, python, "<1>"), program_of("0", "Gate").cells[1]])
    program.stops = (("<2>", 1),)
    source = program.cells[0]
    line = source.lines.index("        h.mul_(2)") + 1
    tree = tree_at(program, Place(1, None, line, ""))
    assert tree is tree_of(program, source) and len(tree.statements) < 50
    statement = tree.statement(Place(1, None, line, ""))
    assert statement is not None and tree.code(statement) == "h.mul_(2)"
    edit = Draft(tree).remove(statement).edit()
    assert edit is not None and edit.new_source == text.replace("        h.mul_(2)\n", "")
    other = tree_at(program, Place(1, None, 60, ""))  # one asks for it: all is read
    assert len(other.statements) > 500


def explained(cells: list[str]) -> tuple[dict[str, Any], float]:
    """The report on the last cell, and the CPU time that it took."""
    chain, spent = autograd_explain._explain_incident, list[float]()

    def timed(*args: Any, **kwargs: Any) -> Any:
        told = []
        spent.append(seconds_of(lambda: told.append(chain(*args, **kwargs))))
        return told[0]

    patched = mock.patch.object(autograd_explain, "_explain_incident", timed)
    with patched, shell_with_extension() as shell, captured():
        for cell in cells:
            shell.run_cell(cell, store_history=True)
        found = autograd_explain.last()
    assert found is not None and len(spent) == 1
    return found.to_dict(), spent[0]


def in_a_file(text: str, folder: Path) -> list[str]:
    name = f"layers_{next(_numbers)}"
    (folder / f"{name}.py").write_text(text)
    return [f"import torch\nfrom {name} import Gate", USE]


SHAPES: dict[str, Callable[[str, Path], list[str]]] = {
    "file": in_a_file,
    "cell": lambda text, folder: [text, USE],
    "one": lambda text, folder: [text + USE],
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("shape", "filler"), [("file", HELPER), ("cell", HELPER), ("one", FLAT)])
def test_the_report_is_that_of_the_short_program(
    shape: str, filler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    reports, times = [], []
    for lines in (0, 0, LINES):  # the first loads what is loaded once
        report, seconds = explained(SHAPES[shape](filled(MODEL, filler, lines), tmp_path))
        reports.append(report)
        times.append(seconds)
    short, long = reports[1:]
    assert [e["place"]["source"] for e in long["events"]] == [
        e["place"]["source"] for e in short["events"]
    ]
    assert "h.mul_(2)" in [e["place"]["source"] for e in long["events"]]
    assert [(r["title"], added(r)) for r in long["rewrites"]] == [
        (r["title"], added(r)) for r in short["rewrites"]
    ]
    assert len(long["rewrites"]) >= 2
    whole = seconds_to_parse(filled(MODEL, filler))
    assert times[2] - times[1] < whole  # a third of it on a quiet machine


def added(rewrite: dict[str, Any]) -> list[str]:
    """The lines that a rewrite adds."""
    (edit,) = rewrite["edits"]
    old = set(lines_of(edit["old_source"]))
    return [line for line in lines_of(edit["new_source"]) if line not in old]
