"""A copy where one object got a second name, or keeps what a function computes."""

from __future__ import annotations

import pytest
from rewriting import program_of, result, spot

from autograd_explain.rewrite.transforms.copied_object import (
    argument_copied,
    called_instead,
    deep_copied,
)


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


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import shop.old as so\ny = so.f(x)\n", "import shop.new\n@y = shop.new.f(x)\n"),
        ("from shop.old import f\ny = f(x)\n", "import shop.new\n@y = shop.new.f(x)\n"),
        ("from shop import old, new\ny = old.f(x)\n", "@y = new.f(x)\n"),
        ("from shop import old as shop\ny = shop.f(x)\n", None),
    ],
)
def test_another_function_of_the_package_is_called(before: str, after: str | None) -> None:
    program = program_of(before)
    place = spot(program, before.splitlines()[1].removeprefix("y = "))
    found = [*called_instead(program, [(place, "shop.new.f")])]
    head = before.splitlines(keepends=True)[0]
    expected = None if after is None else after.replace("@", head)
    assert (result(found[0].edits) if found else None) == expected


def test_argument() -> None:
    text = 'def f(data):\n    """What it does."""\n    data.x = net(data.x)\n    return data\n'
    program = program_of(text)
    found = result(argument_copied(program, spot(program, "net"), "data"))
    assert found == "import copy\n" + text.replace(
        "    data.x", "    data = copy.copy(data)\n    data.x"
    )
