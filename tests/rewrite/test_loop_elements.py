"""Elements of a list that a loop writes to, replaced in the list."""

from __future__ import annotations

import pytest
from rewriting import at, program_of, result

from autograd_explain.rewrite.transforms.indexed_loop import element_replaced


def replaced(code: str) -> str | None:
    program = program_of(f"import torch\n{code}")
    text = result(element_replaced(program, at(program, "    ", nth=-1)))
    return None if text is None else text.removeprefix("import torch\n")


@pytest.mark.parametrize(
    ("write", "new"),
    [
        ("x -= a + b", "x - (a + b)"),
        ("x.mul_(2).add_(1)", "x.mul(2).add(1)"),
        ("x.zero_()", "torch.zeros_like(x)"),
    ],
)
def test_the_element_is_replaced_in_the_list(write: str, new: str) -> None:
    assert replaced(f"for x in self.xs:\n    {write}\n") == (
        f"for i, x in enumerate(self.xs):\n    self.xs[i] = {new}\n"
    )


@pytest.mark.parametrize(
    ("loop", "new"),
    [
        ("for x, g in zip(self.xs, gains)", "for i, (x, g) in enumerate(zip(self.xs, gains))"),
        ("for i, x in enumerate(self.xs)", "for i, x in enumerate(self.xs)"),
    ],
)
def test_the_list_may_be_one_of_several(loop: str, new: str) -> None:
    assert replaced(f"{loop}:\n    x *= g\n") == f"{new}:\n    self.xs[i] = x * g\n"


@pytest.mark.parametrize(
    "loop",
    [
        "for k, x in self.xs.items()",
        "for (k, x), g in zip(self.xs.items(), gains)",
        "for n, (k, x) in enumerate(self.xs.items())",
    ],
)
def test_the_value_is_replaced_in_the_dict(loop: str) -> None:
    assert replaced(f"{loop}:\n    x *= g\n") == f"{loop}:\n    self.xs[k] = x * g\n"


def test_a_list_that_was_given_is_copied() -> None:
    code = "def f(xs):\n    for x in xs:\n        x += 1\n    return xs\n"
    program = program_of(code)
    assert result(element_replaced(program, at(program, "        x += 1"))) == (
        "def f(xs):\n    xs = list(xs)\n    for i, x in enumerate(xs):\n        xs[i] = x + 1\n"
        "    return xs\n"
    )


@pytest.mark.parametrize(
    "code",
    [
        "for a, (x, y) in zip(b, xs):\n    x += 1\n",
        "for x, y in xs:\n    x += 1\n",
        "for x, y in xs.items():\n    x += 1\n",  # the key
        "def f(xs):\n    for x in xs:\n        x += 1\n",  # the caller's list
        "xs = a.split(2)\nfor x in xs:\n    x += 1\n",  # a tuple
        "for x in xs:\n    x.data.add_(1)\n",
        "for x in f(y):\n    x += 1\n",
        "for x in xs:\n    x.requires_grad_()\n",
    ],
)
def test_others_stay(code: str) -> None:
    assert replaced(code) is None
