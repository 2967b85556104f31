"""Messages that are autograd's only in the right place."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograd_explain.match import match_message

HERE = Path(__file__).parent


def foreign() -> list[str]:
    lines = (HERE / "foreign.txt").read_text("utf-8").splitlines()
    return [
        line.replace("\\n", "\n").replace("\\t", "\t")
        for line in lines
        if line and not line.startswith("# ")
    ]


def test_there_are_enough_foreign_errors() -> None:
    assert len(set(foreign())) >= 300


def test_foreign_errors_are_left_alone() -> None:
    for text in foreign():
        assert match_message(text) is None, text
        assert match_message(text.partition(": ")[2]) is None, text
        printed = f"Traceback (most recent call last):\n  x = f(y)\n{text}\n"
        assert match_message(printed) is None, text


def id_of(text: str, source: str = "") -> str | None:
    match = match_message(text, source=source)
    return match.pattern if match else None


NONE_DATA = "'NoneType' object has no attribute 'data'"
TIMES_NONE = "unsupported operand type(s) for *: 'float' and 'NoneType'"
NONE_TIMES = "unsupported operand type(s) for *: 'NoneType' and 'int'"
MINUS_NONE = "bad operand type for unary -: 'NoneType'"
KEYWORD = "forward() got an unexpected keyword argument 'scale'"


@pytest.mark.parametrize(
    ("text", "source", "id"),
    [
        (NONE_DATA, "p.grad.data.zero_()", "grad-none-attribute"),
        (NONE_DATA, "node.next.data", None),
        ("'NoneType' object has no attribute 'zero_'", "", "grad-none-attribute"),
        ("'NoneType' object has no attribute 'strip_'", "text.strip_()", "grad-none-attribute"),
        (TIMES_NONE, "w -= lr * w.grad", "grad-none-arithmetic"),
        (TIMES_NONE, "total = price * count", None),
        (NONE_TIMES, "g = w.grad * 2", "grad-none-first"),
        (NONE_TIMES, "total = count * 2", None),
        (MINUS_NONE, "forces = -pos.grad", "grad-none-unary"),
        (MINUS_NONE, "forces = -force", None),
        ("unsupported operand type(s) for +: 'int' and 'str'", "x.grad + y", None),
        ("'float' object has no attribute 'backward'", "", "backward-on-non-tensor"),
        ("'Browser' object has no attribute 'backward'", "browser.backward()", None),
        ("'Thing' object has no attribute 'backward'", "loss.backward()", "backward-on-non-tensor"),
        (KEYWORD, "y = Scale.apply(x, scale=2)", "function-kwarg-unexpected"),
        (KEYWORD, "y = net(x, scale=2)", None),
        (f"Net.{KEYWORD}", "", None),
        ("Found dtype Double but expected Float", "", "found-dtype"),
        ("Found dtype object but expected int64", "", None),
        ("ValueError: Unexpected keyword arguments: foo", "checkpoint(f, x, foo=1)",
         "checkpoint-unexpected-kwargs"),
        ("TypeError: Unexpected keyword arguments: foo", "", None),
        ("ValueError: Unexpected keyword arguments: foo", "build(foo=1)", None),
    ],
)  # fmt: skip
def test_the_program_line_decides(text: str, source: str, id: str | None) -> None:
    assert id_of(text, source) == id


KERNEL = "expected scalar type Float but found Double"


@pytest.mark.parametrize(
    ("last", "id"),
    [
        ('  File "/home/me/train.py", line 9, in backward\n', "backward-dtype-scalar-type"),
        ("Cell In[3], line 9, in Scale.backward(ctx, grad)\n", "backward-dtype-scalar-type"),
        ('  File "/home/me/train.py", line 9, in forward\n', None),
        ('  File "/usr/lib/site-packages/torch/_tensor.py", line 9, in backward\n', None),
    ],
)
def test_the_running_function_decides(last: str, id: str | None) -> None:
    head = 'Traceback (most recent call last):\n  File "/home/me/train.py", line 20, in <module>\n'
    assert (
        id_of(f"{head}    loss.backward()\n{last}    return grad @ w\nRuntimeError: {KERNEL}") == id
    )
