"""A write to a tensor moved to before the views that were made of it."""

from __future__ import annotations

import pytest
from rewriting import at, program_of, result, spot

from autograd_explain.rewrite.transforms.indexed_loop import write_before_views

HELPER = "def halves(y, k=2):\n    return dict(zip('ab', y.chunk(k)))\n"


def before(code: str, write: str, maker: str, reached: str = "") -> str | None:
    program = program_of(code)
    found = write_before_views(
        program,
        at(program, write),
        spot(program, maker),
        spot(program, reached or maker),
    )
    return result(found)


def test_views_of_the_same_statement() -> None:
    code = "a, b = x.chunk(2)\nn = 3\nx *= n_0\nf(a)\n"
    assert before(code, "x *= n_0", "x.chunk(2)") == "x *= n_0\na, b = x.chunk(2)\nn = 3\nf(a)\n"


def test_views_from_a_helper_and_a_name_for_one() -> None:
    code = HELPER + "both = halves(x)\na = both['a']\nx *= 2\nf(a)\n"
    assert before(code, "x *= 2", "y.chunk(k)", "halves(x)") == (
        HELPER + "x *= 2\nboth = halves(x)\na = both['a']\nf(a)\n"
    )


DECLINED = [
    "a, b = x.chunk(2)\nx *= a.sum()\n",  # reads a view
    "a, b = x.chunk(2)\ns = a.sum()\nx *= 2\n",
    "a, b = x.chunk(2)\nt = x.sum()\nx *= 2\n",
    "p = x.chunk(2)\nx = p[0]\nx *= 2\n",
    "(a, b), s = x.chunk(2), x.sum()\nx *= 2\n",
    "c = [p.exp() for p in x.chunk(2)]\nx *= 2\n",
    "x *= 2\na, b = x.chunk(2)\n",
]


@pytest.mark.parametrize("code", DECLINED)
def test_declined(code: str) -> None:
    write = next(line for line in code.splitlines() if line.startswith("x *="))
    assert before(code, write, "x.chunk(2)") is None


HELPERS = [
    "def f(y):\n    s = y.sum()\n    return [*y.chunk(2)], s\n",
    "def f(y):\n    return [*y.chunk(2), y.sum()]\n",
    "def f(y):\n    return [p + 1 for p in y.chunk(2)]\n",
]


@pytest.mark.parametrize("helper", HELPERS)
def test_helper_that_computes(helper: str) -> None:
    assert before(helper + "p = f(x)\nx *= 2\n", "x *= 2", "y.chunk(2)", "f(x)") is None


def test_helper_called_with_something_computed() -> None:
    code = HELPER + "p = halves(x, int(x.sum()))\nx *= 2\n"
    assert before(code, "x *= 2", "y.chunk(k)", "halves(x, int(x.sum()))") is None
