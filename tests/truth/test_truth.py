"""Every name, line, version and order in a report is true of the run that it tells about.

By default every thirty-sixth program; AUTOGRAD_EXPLAIN_TRUTH=all takes them all, in both modes.
"""

from __future__ import annotations

import copy
import os
import re
from typing import Any

import pytest
from truth.oracle import falsehoods
from truth.run import main

EVERYTHING = os.environ.get("AUTOGRAD_EXPLAIN_TRUTH") == "all"
PROGRAM = [
    "import torch\nw = torch.ones(3, requires_grad=True)",
    "h = torch.sigmoid(w)\ny = h * h\nh += 1\ny.sum().backward()",
]
MESSAGE = "one of the variables needed for gradient computation has been modified by an inplace"


def event(what: str, line: int, source: str, op: str | None = None, version: int | None = None):
    place = {"cell": 2, "file": None, "line": line, "source": source, "function": None}
    return {"what": what, "place": place, "op": op, "version": version, "certainty": "observed"}


@pytest.fixture
def report() -> dict[str, Any]:
    """A report on PROGRAM that is true."""
    culprit = {
        "role": "culprit", "names": ["h"], "shape": [3], "dtype": "float32", "requires_grad": True
    }  # fmt: skip
    return {
        "id": "saved_value_overwritten",
        "kind": "error",
        "message": MESSAGE,
        "headline": "`h` was overwritten after the forward pass had saved it for backward.",
        "explanation": "`y = h * h` kept `h` (version 0). `h += 1` (In[2]:3) then wrote into it.",
        "tensors": [culprit],
        "events": [
            event("saved", 2, "y = h * h", "MulBackward0", 0),
            event("changed", 3, "h += 1", "add_", 1),
            event("failed", 4, "y.sum().backward()"),
        ],
    }


def test_a_true_report_has_no_false_statement(report):
    assert falsehoods(report, PROGRAM, frozenset()) == []


def place(line: int, source: str) -> dict[str, Any]:
    return event("", line, source)["place"]


def test_an_expression_is_a_name_where_the_program_computes_it(report):
    program = [PROGRAM[0], PROGRAM[1].replace("h = torch.sigmoid(w)", "h = torch.sigmoid( w )")]
    report["tensors"][0]["names"] = ["torch.sigmoid(w)", "h"]
    assert falsehoods(report, program, frozenset()) == []
    report["tensors"][0]["names"] = ["torch.sigmoid(h)"]
    assert falsehoods(report, program, frozenset()) != []
    report["tensors"][0]["names"] = ["y.sum()"]
    found = falsehoods(report, program, frozenset())
    assert any("no name stands for such a tensor" in line for line in found), found


@pytest.mark.parametrize(
    ("path", "value", "complaint"),
    [
        (("events", 1, "place"), place(2, "y = h * h"), "wrote nothing there"),
        (("events", 1, "place"), place(3, "h += 2"), "other text"),
        (("events", 1, "version"), 2, "another version"),
        (("events", 0, "place"), place(3, "h += 1"), "made other nodes"),
        (("events", 0, "op"), "ReluBackward0", "made other nodes"),
        (("events", 2, "place"), place(3, "h += 1"), "failed at"),
        (("tensors", 0, "names"), ["gone"], "stands for nothing"),
        (("tensors", 0, "shape"), [4], "no name stands for such a tensor"),
        (("headline",), "`other` was overwritten", "neither a name known there"),
        (("explanation",), "`h += 1` (In[2]:2) wrote into it", "does not stand at"),
        (("explanation",), "`h` ran once, before the loop", "claim"),
    ],
)
def test_a_false_statement_is_found(report, path, value, complaint):
    changed = copy.deepcopy(report)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    found = falsehoods(changed, PROGRAM, frozenset())
    assert any(complaint in line for line in found), found


@pytest.mark.skipif(not hasattr(os, "fork"), reason="programs run in forks")
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("mode", ["check", "hook"] if EVERYTHING else ["check"])
def test_reports_on_field_cases_and_injected_programs(mode, capsys):
    main(["--mode", mode, "--injected", "200", *([] if EVERYTHING else ["--part", "36"])])
    told = capsys.readouterr().out
    numbers = [int(n) for n in re.findall(r"\d+", told.splitlines()[-1])]
    programs, reports, compared, false = numbers
    assert false == 0, told
    assert reports > (0.9 if mode == "check" else 0.8) * programs
    assert compared > 0.95 * reports
