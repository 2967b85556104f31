"""Writes through another name for a tensor's memory."""

from __future__ import annotations

import pytest
from rewriting import at, program_of, result

from autograd_explain.knowledge.silent_overwrite.alias import through_tensor
from autograd_explain.rewrite.transforms.clone import functional_write
from autograd_explain.rewrite.transforms.out_of_place import out_of_place


def recorded(before: str, *others: str) -> str | None:
    program = program_of(*others, before)
    edits = through_tensor(
        program,
        at(program, "raw ="),
        at(program, "# write"),
        lambda p, place: out_of_place(p, place) or functional_write(p, place),
    )
    if edits is None:
        return None
    (edit,) = edits
    assert edit.old_source == before
    return result(edits)


@pytest.mark.parametrize(
    ("write", "after"),
    [
        ("raw.mul_(0.5)", "h = h.mul(0.5)"),
        ("raw *= 0.5", "h = h * 0.5"),
        ("raw.clamp_(0, 1).neg_()", "h = h.clamp(0, 1).neg()"),
    ],
)
@pytest.mark.parametrize("value", ["h.data", "h.detach()"])
def test_the_write_is_made_by_the_tensor(write: str, after: str, value: str) -> None:
    before = f"h = f(x)\nraw = {value}\n{write}  # write\nout = g(h)\n"
    assert recorded(before) == f"h = f(x)\n{after}  # write\nout = g(h)\n"


def test_in_a_function_and_by_index() -> None:
    before = "def damp(t):\n    raw = t.data\n    raw[t < 0] = 0.0  # write\n    return t\n"
    after = recorded(before)
    assert after is not None and "raw" not in after and "t = " in after


@pytest.mark.parametrize(
    "before",
    [
        "raw = h.data\nraw.mul_(0.5)  # write\nprint(raw)\n",
        "raw = h.data\nh = f(h)\nraw.mul_(0.5)  # write\n",
        "raw = h.data\nfor b in bs:\n    raw.mul_(0.5)  # write\n    h = f(h)\n",
        "raw = h.clone()\nraw.mul_(0.5)  # write\n",
        "raw = nets[next(i)].data\nraw.mul_(0.5)  # write\n",
        "def f():\n    raw = h.data\n    def g():\n        raw.mul_(0.5)  # write\n    return g\n",
    ],
)
def test_only_where_the_name_is_for_the_write(before: str) -> None:
    assert recorded(before) is None


def test_not_where_another_cell_reads_the_name() -> None:
    assert recorded("raw = h.data\nraw.mul_(0.5)  # write\n", "print(raw)") is None
