"""Statements under no_grad, and what keeps gradients off taken away."""

from __future__ import annotations

import pytest
from rewriting import at, cell, program_of, result, rewritten

from autograd_explain.program import Program, Source
from autograd_explain.rewrite.transforms.grad_mode import (
    block_instead_of_switch,
    remove_grad_switch,
    under_no_grad,
)

WRAPS = [
    ("w -= lr * w.grad  # step", "w -=", "with torch.no_grad():\n    w -= lr * w.grad  # step"),
    ("# why\nw[0] = 1", "w[0]", "# why\nwith torch.no_grad():\n    w[0] = 1"),
    (
        "for n in ps:\n\tps[n] -= lr\n\tps[n].grad.zero_()\n",
        "-=",
        "for n in ps:\n\twith torch.no_grad():\n\t\tps[n] -= lr\n\tps[n].grad.zero_()\n",
    ),
    (
        "def f(self, v): self.w[0] = v  # set\n",
        "self.w",
        "def f(self, v):\n    with torch.no_grad():\n        self.w[0] = v  # set\n",
    ),
    (
        "a = 1; w += a; b = 2  # c",
        None,
        "a = 1\nwith torch.no_grad():\n    w += a\nb = 2  # c",
    ),
    (
        "with torch.enable_grad():\n  w.add_(\n    1)\n",
        "w.add_",
        "with torch.enable_grad():\n  with torch.no_grad():\n    w.add_(\n      1)\n",
    ),
]


@pytest.mark.parametrize(("before", "needle", "after"), WRAPS)
def test_under_no_grad(before: str, needle: str | None, after: str) -> None:
    if needle is None:
        program = program_of(before)
        from rewriting import spot

        assert result(under_no_grad(program, spot(program, "w += a"))) == after
    else:
        assert rewritten(under_no_grad, before, needle) == after


DECLINES = [
    ("with torch.no_grad():\n    w += 1", "w +="),
    ("@torch.no_grad()\ndef f():\n    w[0] = 1", "w[0]"),
    ("with torch.inference_mode():\n    w += 1", "w +="),
    ("def f():\n    yield w.add_(1)", "yield"),
    ("%time w.add_(1)", "%time"),
    ("a = 1; b = 2", "a ="),
]


@pytest.mark.parametrize(("code", "needle"), DECLINES)
def test_under_no_grad_declines(code: str, needle: str) -> None:
    assert rewritten(under_no_grad, code, needle) is None


def test_a_run_of_statements() -> None:
    program = program_of("a = 1\nw += 1\n# two\nv += 1\nb = 2\n")
    text = result(under_no_grad(program, at(program, "w +="), at(program, "v +=")))
    assert text == "a = 1\nwith torch.no_grad():\n    w += 1\n    # two\n    v += 1\nb = 2\n"


def test_a_run_ends_in_its_own_block() -> None:
    program = program_of("w += 1\nif c:\n    v += 1\n")
    assert under_no_grad(program, at(program, "w +="), at(program, "v +=")) is None


NAMES = [
    ("import torch as th\n", "th.no_grad()"),
    ("from torch import no_grad\n", "no_grad()"),
    ("import torch\nfrom torch import no_grad as quiet\n", "quiet()"),
    ("import numpy\n", None),
]


@pytest.mark.parametrize(("imports", "guard"), NAMES)
def test_the_name_of_torch(imports: str, guard: str | None) -> None:
    text = imports + "w += 1\n"
    program = Program([Source(1, None, text, text, "c")])
    found = result(under_no_grad(program, at(program, "w +=")))
    assert found == (guard and f"{imports}with {guard}:\n    w += 1\n")


def test_a_switch_becomes_a_block() -> None:
    before = """
        def evaluate(model, x):
            model.eval()
            torch.set_grad_enabled(False)
            out = model(x)  # forward
            score = out.item()
            return score
        """
    assert rewritten(block_instead_of_switch, cell(before), "False") == cell(
        """
        def evaluate(model, x):
            model.eval()
            with torch.no_grad():
                out = model(x)  # forward
                score = out.item()
                return score
        """
    )


def test_a_switch_with_its_counterpart() -> None:
    before = """
        torch.set_grad_enabled(False)
        out = model(x)

        torch.set_grad_enabled(True)
        y = 1
        """
    assert rewritten(block_instead_of_switch, cell(before), "False") == cell(
        """
        with torch.no_grad():
            out = model(x)

        y = 1
        """
    )


def test_a_switch_up_to_the_end() -> None:
    text = rewritten(block_instead_of_switch, "torch.set_grad_enabled(False)\na = 1\n", "False")
    assert text == "with torch.no_grad():\n    a = 1\n"


def test_switching_on_is_no_such_switch() -> None:
    assert rewritten(block_instead_of_switch, "torch.set_grad_enabled(True)\na = 1", "True") is None


REMOVES = [
    ("@torch.no_grad()\n@other\ndef f():\n    a = 1\n", "@other\ndef f():\n    a = 1\n"),
    ("# c\n@torch.no_grad()\ndef f():\n    a = 1\n", "# c\ndef f():\n    a = 1\n"),
    (
        "with torch.no_grad():\n    # c\n    a = 1\n    b = 2  # d\nc = 3\n",
        "# c\na = 1\nb = 2  # d\nc = 3\n",
    ),
    ("def f():\n    with torch.no_grad():\n        a = 1\n", "def f():\n    a = 1\n"),
    ("def f():\n    a = 1\n", None),
]


@pytest.mark.parametrize(("before", "after"), REMOVES)
def test_remove_grad_switch(before: str, after: str | None) -> None:
    assert rewritten(remove_grad_switch, before, "a = 1") == after
