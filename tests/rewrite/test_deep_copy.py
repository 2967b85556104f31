"""A copy where one object got a second name."""

from __future__ import annotations

import pytest
from rewriting import program_of, result, spot

from autograd_explain.knowledge.graph_cut.deep_copy import deep_copied


def copied(*cells: str) -> str | None:
    program = program_of(*cells)
    return result(deep_copied(program, spot(program, "net")))


def test_import_comes_along() -> None:
    assert copied("target = net\n") == "import copy\ntarget = copy.deepcopy(net)\n"


def test_known_function() -> None:
    assert copied("from copy import deepcopy\n", "b = net\n") == "b = deepcopy(net)\n"


@pytest.mark.parametrize(
    "other", ["from copy import copy\n", "copy = 3\n", "def copy(x):\n    return x\n"]
)
def test_declined_where_a_cell_has_its_own_copy(other: str) -> None:
    assert copied(other, "target = net\n") is None
