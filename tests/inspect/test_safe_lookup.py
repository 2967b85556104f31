"""Expressions that only look things up are evaluated; what would run code is not."""

from __future__ import annotations

import ast
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from autograd_explain.inspect.dataflow import safe_lookup
from autograd_explain.inspect.dataflow.safe_lookup import evaluate, iterated, taken


class Counted:
    def __init__(self) -> None:
        self.h0, self.h1 = "zero", "one"

    @property
    def rate(self) -> str:
        raise AssertionError("a property ran")

    def __call__(self) -> str:
        raise AssertionError("a call ran")


class Field:
    """A descriptor of the user's."""

    def __get__(self, owner: Any, kind: Any) -> Any:
        raise AssertionError("the user's code ran")


class Kept(dict[str, Any]):
    """A table that says itself what it holds."""

    def __getitem__(self, key: str) -> Any:
        raise AssertionError("the user's code ran")

    def items(self) -> Any:
        raise AssertionError("the user's code ran")


class Lazy:
    field = Field()

    @cached_property
    def cached(self) -> int:
        raise AssertionError("a property ran")


TABLED = Lazy()
TABLED.__dict__ = Kept(size=3)


class Backwards(list[Any]):
    """Says itself what its items are, and how many."""

    def __getitem__(self, key: Any) -> Any:
        raise AssertionError("the user's code ran")

    def __len__(self) -> int:
        raise AssertionError("the user's code ran")


class Blocks(torch.nn.Module):
    """Its items are not its children in their order."""

    def __init__(self) -> None:
        super().__init__()
        self.drop = torch.nn.Dropout()
        self.layers = torch.nn.ModuleList([torch.nn.ReLU()])

    def __getitem__(self, key: int) -> torch.nn.Module:
        return self.layers[key]


class Told:
    """A key that is looked up by code of its own."""

    def __hash__(self) -> int:
        raise AssertionError("the user's code ran")


TAGGED = torch.ones(2)
TAGGED.role = "bias"  # type: ignore[attr-defined]

NAMES: dict[str, Any] = {
    "backwards": Backwards("abc"),
    "lazy": Lazy(),
    "tabled": TABLED,
    "blocks": Blocks(),
    "told": Told(),
    "tagged": TAGGED,
    "grid": {(0, 1): "cell", None: "rest"},
    "at": (0, 1),
    "nothing": None,
    "net": Counted(),
    "outs": ["a", "b", "c"],
    "acts": {"one": 1, "two": 2},
    "i": 1,
    "name": "h1",
    "w": torch.ones(2),
    "space": SimpleNamespace(k=5),
}


def look(node: ast.Name) -> Any:
    return NAMES.get(node.id, safe_lookup.builtin(node.id))


def value(text: str) -> Any:
    return evaluate(ast.parse(text, mode="eval").body, look)


FOUND = {
    "net.h0": "zero",
    "getattr(net, name)": "one",
    "getattr(net, f'h{i}')": "one",
    "getattr(net, 'h' + str(i - 1))": "zero",
    "outs[-1]": "c",
    "outs[len(outs) - 2]": "b",
    "acts.get('two')": 2,
    "vars(net)['h1']": "one",
    "space.k": 5,
    "tagged.role": "bias",
    "grid[at]": "cell",
    "grid[nothing]": "rest",
}
UNKNOWN = ["net.rate", "net()", "getattr(net, 'rate')", "w.grad", "outs[9]", "i / 0", "i % 0",
           "missing.h", "backwards[0]", "lazy.cached", "lazy.field", "tabled.size", "blocks[0]",
           "grid[told]",
           "getattr(net, missing)", "f'{i:3}'", "print(1)"]  # fmt: skip


@pytest.mark.parametrize("text", FOUND)
def test_looked_up(text: str) -> None:
    assert value(text) == FOUND[text]


@pytest.mark.parametrize("text", UNKNOWN)
def test_not_run(text: str) -> None:
    assert value(text) is safe_lookup.MISSING


def test_a_name_of_the_users_hides_the_builtin() -> None:
    node = ast.parse("getattr(net, name)", mode="eval").body
    mine = {**NAMES, "getattr": lambda *_: "mine"}
    assert evaluate(node, lambda n: mine[n.id]) is safe_lookup.MISSING


ROUNDS: dict[str, list[Any]] = {
    "(i, 2)": [1, 2],
    "outs": ["a", "b", "c"],
    "acts": ["one", "two"],
    "acts.items()": [("one", 1), ("two", 2)],
    "range(i + 1)": [0, 1],
    "enumerate(outs)": [(0, "a"), (1, "b"), (2, "c")],
    "zip(acts, outs)": [("one", "a"), ("two", "b")],
    "net()": [],
    "w": [],
}


@pytest.mark.parametrize("text", ROUNDS)
def test_rounds_of_a_loop(text: str) -> None:
    assert iterated(ast.parse(text, mode="eval").body, look) == ROUNDS[text]


def test_names_of_a_round() -> None:
    target = ast.parse("i, (name, x)", mode="eval").body
    assert taken(target, (1, ("a", 2))) == {"i": 1, "name": "a", "x": 2}


def test_long_loops_are_taken_in_part() -> None:
    rounds = iterated(ast.parse("range(10 ** 9)", mode="eval").body, look)
    assert rounds == []  # a power is not computed
    NAMES["n"] = 10**9
    assert iterated(ast.parse("range(n)", mode="eval").body, look) == list(range(100))
    assert iterated(ast.parse("range(1, 9, 0)", mode="eval").body, look) == []
