"""A function of an installed library instead of one that hides its operations."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
from autograd_explain.rewrite.transforms.library_offers import offered_instead
from rewriting import applied, at, program_of


@pytest.fixture(autouse=True)
def solving(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed library: a function that hides its operations and one that does not, another
    that takes something else."""
    library = ModuleType("solving")

    def solve(f: object, x: object, *, step: int = 1) -> None: ...

    def solve_adjoint(f: object, x: object, *, step: int = 1, adjoint_step: int = 1) -> None: ...

    def adjoint(f: object) -> None: ...

    for function in (solve, solve_adjoint, adjoint):
        setattr(library, function.__name__, function)
    monkeypatch.setitem(sys.modules, "solving", library)


@pytest.mark.parametrize(
    ("cell", "line", "expected"),
    [
        ("import solving\n", "y = solving.solve_adjoint(f, x)", "y = solving.solve(f, x)"),
        (
            "from solving import solve_adjoint as solve\n",
            "y = solve(f, x, step=2)",
            "from solving import solve\ny = solve(f, x, step=2)",
        ),
    ],
)
def test_what_takes_the_same_is_offered(cell: str, line: str, expected: str) -> None:
    program = program_of(cell + line)
    (proposal,) = offered_instead(program, at(program, line))
    assert expected in applied(program, proposal.edits)[0]


@pytest.mark.parametrize(
    "line", ["y = solving.solve(f, x)", "y = solving.solve_adjoint(f, x, adjoint_step=2)"]
)
def test_what_takes_something_else_is_not_offered(line: str) -> None:
    program = program_of(f"import solving\n{line}")
    assert not list(offered_instead(program, at(program, line)))
