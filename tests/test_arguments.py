"""Which expression a call gives for which parameter: as Python itself binds them."""

from __future__ import annotations

import ast
import inspect
from typing import Any

import pytest

from autograd_explain.arguments import bound_arguments, default


@pytest.mark.parametrize(
    ("signature", "call"),
    [
        ("a, b", "f(1, 2)"),
        ("a, b", "f(b=1, a=2)"),
        ("a, /, b, *, c", "f(1, 2, c=3)"),
        ("a, b=5, *rest, c=6", "f(1)"),
        ("a, b=5, *, c=6", "f(1, c=2)"),
    ],
)
def test_as_python_binds(signature: str, call: str) -> None:
    function = ast.parse(f"def f({signature}): return locals()").body[0]
    assert isinstance(function, ast.FunctionDef)
    space: dict[str, Any] = {}
    exec(ast.unparse(function), space)
    node = ast.parse(call, mode="eval").body
    assert isinstance(node, ast.Call)
    given = {n: ast.literal_eval(v) for n, v in bound_arguments(function, node).items()}
    by_position, by_name = eval(call, {"f": lambda *a, **k: (a, k)})
    bound = inspect.signature(space["f"]).bind(*by_position, **by_name)
    assert given == bound.arguments
    bound.apply_defaults()
    left = {n: default(function, n) for n in bound.arguments if n not in given and n != "rest"}
    assert {n: ast.literal_eval(v) for n, v in left.items() if v is not None} == {
        n: bound.arguments[n] for n in left
    }


@pytest.mark.parametrize(
    ("call", "given"),
    [
        ("bank.keep(x)", {"self": "bank", "row": "x"}),
        ("bank.keep(*xs)", {"self": "bank"}),
        ("bank.keep(x, *xs, note=n)", {"self": "bank", "row": "x", "note": "n"}),
        ("bank.keep(**row)", {"self": "bank"}),
    ],
)
def test_of_methods_and_stars(call: str, given: dict[str, str]) -> None:
    function = ast.parse("def keep(self, row, note=None): pass").body[0]
    node = ast.parse(call, mode="eval").body
    assert isinstance(function, ast.FunctionDef) and isinstance(node, ast.Call)
    found = bound_arguments(function, node)
    assert {name: ast.unparse(value) for name, value in found.items()} == given
