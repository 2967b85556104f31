"""Which cells need no copy of the session: their names reach nothing with a graph."""

from __future__ import annotations

import collections
import math
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy
import pytest
import torch
from torch import nn

from autograd_explain.intercept.without_graph import reaches_no_graph
from autograd_explain.verification import Checkpoint


def names() -> dict[str, Any]:
    found: dict[str, Any] = {
        **{"n": 3, "text": "a", "rows": [[1.0, 2.0], {"a": (None, True)}], "many": [1.0] * 40_000},
        **{"math": math, "np": numpy, "sqrt": math.sqrt, "array": numpy.ones(3)},
        **{"torch": torch, "x": torch.ones(2), "w": torch.ones(2, requires_grad=True)},
        **{"h": torch.ones(2, requires_grad=True) * 2, "p": nn.Parameter(torch.ones(2)), "nn": nn},
        **{
            "rows_of": [torch.ones(2)],
            "mixed": [torch.ones(2, requires_grad=True)],
            "model": nn.Linear(2, 2),
            "held": [1, [nn.ReLU()]],
        },
        **{"queue": collections.deque([torch.ones(2)]), "too_many": [1.0] * 60_000},
    }
    exec(
        "def plain(v, scale=n):\n    return sqrt(v) * helper(v)\n"
        "def helper(v):\n    return v if v < 1 else plain(v - 1)\n"
        "def reaching(v):\n    return [model(w) for w in v]\n"
        "def importing(v):\n    import torch\n    return torch.ones(v)\n"
        "def given(v, by=w):\n    return v\n"
        "def sampled(v):\n    return torch.randn(v) + x\n"
        "def trained(v):\n    return torch.randn(v, requires_grad=True)\n"
        "def turned(v):\n    return v.requires_grad_()\n"
        "class Own:\n    pass\n"
        "own = Own()\n"
        "calls = [plain]\n",
        found,
    )
    return found


CLEAR = (
    "total = sum(v * v for v in many)",
    "print(n, text, rows[0])",
    "for row in rows:\n    count = len(row)\ncount",
    "np.log(array).mean() + math.pi",
    "plain(2.0)",
    "calls[0](n)",
    "import math\nroot = math.sqrt(n)",
    "def later(v):\n    return v + n\nlater(1)",
    "y = x + 1",
    "x += 1\nx.shape, x[0].item()",
    "x = torch.randn(3, generator=torch.Generator().manual_seed(0)).to(torch.float64)",
    "torch.manual_seed(0); y = torch.einsum('i,i->', x, x)",
    "sum(rows_of)",
    "sampled(2)",
    "import torch\ny = torch.arange(3)",
    "importing(2)",
)
REACHING = (
    "y = w + 1",
    "h.mul_(2)",
    "p",
    "mixed[0]",
    "y = torch.ones(2, requires_grad=True)",
    "x.requires_grad_()",
    "(x + 1).backward()",
    "getattr(x, 'back' + 'ward')(); x.grad",
    "trained(2)",
    "turned(x)",
    "torch.nn.Linear(2, 2)",
    "nn.Linear(2, 2)",
    "torch.load('file')",
    "import torch.nn as layers",
    "from torch import nn",
    "model",
    "held[0]",
    "queue.pop()",
    "own",
    "reaching([1])",
    "given(1)",
    "calls.append(reaching); reaching",
    "def later(v):\n    return model(v)",
    "import never_loaded_module",
    "from autograd_explain import last",
    "eval(text)",
    "globals()['x']",
    "sum(too_many)",
    "%time n + 1",
    "n +",
)


@pytest.mark.parametrize("text", CLEAR)
def test_is_clear(text: str) -> None:
    assert reaches_no_graph(text, names())


@pytest.mark.parametrize("text", REACHING)
def test_reaches(text: str) -> None:
    assert not reaches_no_graph(text, names())


def test_what_a_function_closes_over_counts() -> None:
    known = names()

    def make(value: object) -> Any:
        return lambda: value

    for value, clear in ((1, True), (torch.ones(1), True), (nn.Linear(1, 1), False)):
        inner = make(value)
        known["f"] = FunctionType(inner.__code__, known, "f", None, inner.__closure__)
        assert reaches_no_graph("f()", known) is clear


def test_nothing_is_warned_of_twice(recwarn: pytest.WarningsRecorder) -> None:
    assert reaches_no_graph("n is 3", names())
    assert not recwarn.list


def test_only_a_cell_that_reaches_a_graph_is_worth_a_copy(
    run: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[object] = []
    monkeypatch.setattr(Checkpoint, "take", lambda names, **options: taken.append(names))
    run("import torch\nx, n = torch.ones(2), 3\nw = x + 1\n%autograd_check on")
    cells = (("n + 1", 0), ("x + w", 0), ("w.requires_grad_()", 1), ("x + w", 2), ("print(n)", 2))
    for cell, copies in cells:
        run(cell)
        assert len(taken) == copies
