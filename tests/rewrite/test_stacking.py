"""A buffer filled in a loop made a list."""

from __future__ import annotations

import pytest
from rewriting import applied, at, cell, program_of, rewritten, run

from autograd_explain.rewrite import collect_and_stack

RUNS = [
    """
    out = torch.zeros(3, 2)
    for t in range(3):
        out[t] = x[t] * w  # step
    """,
    """
    out = torch.zeros((len(x), 2))
    for i, row in enumerate(x):
        out[i] = row * w
    """,
    """
    out = torch.zeros(2, 4)
    for t in range(3):
        out[:, t + 1] = torch.tanh(out[:, t] + x[t] * w)
    """,
    """
    T = 3
    out = torch.empty(T, 2)
    out[0] = x[0] * w
    for t in range(1, T):
        out[t] = torch.tanh(out[t - 1] + x[t])
    """,
    """
    T = 3
    out = torch.zeros(T + 2, 2)
    for t in range(T):
        h = out[t] + out[t + 1] + x[t] * w
        out[t + 2] = h
    """,
    """
    out = x.new_zeros(2, 3)
    for t in range(3):
        out[..., t] = x[t] * w
    """,
]


@pytest.mark.parametrize("code", RUNS)
def test_same_values_and_a_gradient(code: str) -> None:
    setup = "x = torch.arange(6.).view(3, 2)\nw = torch.ones(2, requires_grad=True)\n"
    code = cell(code)
    program = program_of(code)
    place = at(program, "out[", nth=-1 if "out[t + 2]" in code else 0)
    if "out[0] =" in code:
        place = at(program, "out[t] =")
    (text,) = applied(program, collect_and_stack(program, place))
    assert "append" in text and "torch.stack" in text
    before, after = run(setup + code), run(setup + text)
    assert before["out"].equal(after["out"])
    after["out"].sum().backward()
    assert after["w"].grad is not None


def test_layout() -> None:
    before = """
        out = torch.zeros(steps, 2)

        # go
        for t in range(steps):
            out[t] = f(t)  # step
        print(out)
        """
    assert rewritten(collect_and_stack, cell(before), "out[t]") == cell(
        """
        out = []

        # go
        for t in range(steps):
            out.append(f(t))  # step
        out = torch.stack(out)
        print(out)
        """
    )


@pytest.mark.parametrize(
    "code",
    [
        "out = torch.zeros(9, 2)\nfor t in range(8):\n    out[t] = f(t)\n",  # one stays zero
        "out = torch.zeros(n, 2)\nfor t in range(m):\n    out[t] = f(t)\n",
        "out = torch.zeros(n, 2)\nfor t in range(n):\n    if t: out[t] = f(t)\n",
        "out = torch.zeros(n, 2)\nfor t in range(n):\n    g(out)\n    out[t] = f(t)\n",
        "out = torch.zeros(n, 2)\nfor t in range(n):\n    out[n - t] = f(t)\n",
        "out = torch.zeros(n, 2)\nfor t in range(n):\n    out[t] = 0\n",
        "out = torch.zeros(n, 2)\nfor t in range(n):\n    out[t] = f(t)\n    if t: break\n",
        "out = torch.zeros(n, 2)\ng(out)\nfor t in range(n):\n    out[t] = f(t)\n",
        "out = torch.zeros(n, 2)\nfor t in range(n):\n    y = out[t]\n    out[t] = f(y)\n",
        "out = torch.zeros(n, 2)\nfor t in range(0, n, 2):\n    out[t] = f(t)\n",
        "out = torch.zeros(n)\nfor t in range(n):\n    out[t] = f(t)\n",
        "for t in range(n):\n    out[t] = f(t)\n",
    ],
)
def test_declines(code: str) -> None:
    assert rewritten(collect_and_stack, code, "out[" if "if t:" not in code else "out[t] =") is None
