"""In-place modules switched off where they are constructed."""

from __future__ import annotations

import pytest
from rewriting import applied, at, program_of, result

from autograd_explain.rewrite.transforms.inplace_modules import module_not_inplace

CONSTRUCTORS = [
    ("act = nn.ReLU(inplace=True)", "act = nn.ReLU()"),
    ("act = nn.ReLU(True)", "act = nn.ReLU()"),
    ("act = nn.LeakyReLU(0.1, True)", "act = nn.LeakyReLU(0.1)"),
    ("act = nn.Dropout(p=0.1, inplace=True)", "act = nn.Dropout(p=0.1)"),
    ("act = nn.ReLU(inplace=flag)", "act = nn.ReLU()"),
    ("a, b = nn.ReLU(True), nn.ReLU6(True)", "a, b = nn.ReLU(), nn.ReLU6()"),
    ("act = nn.ReLU(inplace=False)", None),
    ("act = nn.LeakyReLU(0.1)", None),
    ("act = ReLU(True)", None),
    (
        "from blocks import MLP\nnet = MLP(inplace=True)",
        "from blocks import MLP\nnet = MLP(inplace=False)",
    ),
    ("from blocks import MLP\nnet = MLP(inplace=flag)", None),
]


@pytest.mark.parametrize(("before", "after"), CONSTRUCTORS)
def test_at_the_constructor(before: str, after: str | None) -> None:
    program = program_of(before)
    assert result(module_not_inplace(program, at(program, before.splitlines()[-1]))) == after


def test_the_line_chooses_in_a_sequential() -> None:
    program = program_of(
        """
        net = nn.Sequential(
            nn.Linear(2, 2),
            nn.ReLU(inplace=True),  # first
            nn.ReLU(inplace=True),  # second
        )
        """
    )
    text = result(module_not_inplace(program, at(program, "second")))
    assert text is not None
    assert "nn.ReLU(inplace=True),  # first" in text
    assert "nn.ReLU(),  # second" in text


def test_not_where_another_line_needs_the_write() -> None:
    program = program_of("act = nn.ReLU(True)\ndef f(x, w):\n    act(x)\n    return x + act(w)\n")
    assert module_not_inplace(program, at(program, "return"), "act") is None
    program = program_of("act = nn.ReLU(True)\ndef f(x, w):\n    return x + act(w)\n")
    assert module_not_inplace(program, at(program, "return"), "act") is not None


BLOCK = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(2, 2, 1)
        self.act = nn.ReLU(inplace=True)
        self.other = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.conv(self.act(x))
"""


def test_from_a_call_of_the_module() -> None:
    program = program_of(BLOCK)
    text = result(module_not_inplace(program, at(program, "return")))
    assert text is not None
    assert "self.act = nn.ReLU()" in text
    assert "self.other = nn.ReLU(inplace=True)" in text


def test_from_a_subclass() -> None:
    program = program_of(
        BLOCK, "class Two(Block):\n    def forward(self, x):\n        return self.act(x)"
    )
    text = applied(program, module_not_inplace(program, at(program, "return self.act", 3)))[0]
    assert "self.act = nn.ReLU()" in text


def test_through_a_function_in_another_cell() -> None:
    program = program_of(
        "def mlp(n):\n    return nn.Sequential(nn.Linear(n, n), nn.ELU(1.0, True))",
        "net = mlp(3)",
        "y = net(x)",
    )
    text = applied(program, module_not_inplace(program, at(program, "y = net")))[0]
    assert text.endswith("nn.ELU(1.0))")


def test_several_possible_modules_are_not_guessed() -> None:
    program = program_of("a, b = nn.ReLU(True), nn.ReLU(True)\n", "y = a(b(x))")
    assert module_not_inplace(program, at(program, "y =")) is None
