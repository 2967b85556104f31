"""What is said about torch's in-place methods, compared with torch."""

from __future__ import annotations

import warnings

import pytest
import torch
from rewriting import at, program_of, result

from autograd_explain.rewrite.analysis.inplace_writes import (
    NOT_WRITES,
    inplace_position,
    is_inplace_method,
)
from autograd_explain.rewrite.transforms.out_of_place import out_of_place

SETUP = """
x = torch.rand(3, 3) + 0.1
y = torch.rand(3, 3) + 0.1
b, c = x > 0.6, (y > 0.6)
k = torch.randint(0, 9, (3, 3))
i = torch.tensor([0, 2])
"""
#: Arguments to try, one after the other, until torch takes them.
ARGUMENTS = (
    "",
    "y",
    "0.5",
    "1",
    "y, y",
    "0, 1",
    "0, i, 0.5",
    "0, i, y[:2]",
    "0, k % 3, y",
    "0, k % 3, y, 'sum'",
    "0, i, y[:2], 'prod'",
    "b, 0.5",
    "b, y",
    "(i,), y[:2]",
    "k % 9, y",
    "0.1, 0.5",
    "torch.mul",
    "lambda v: v * 2",
    "y, lambda v, w: v + w",
    "y, y, lambda u, v, w: u + v + w",
    "2, 0, 1.0",
    "torch.rand(3)",
    "torch.rand(3), torch.rand(3)",
    "torch.rand(1, 3, 3), torch.rand(1, 3, 3)",
    "(1, 0)",
)
METHODS = [n for n in dir(torch.Tensor) if not n.startswith("_") and is_inplace_method(n)]


def works(code: str, seed: str) -> torch.Tensor | None:
    torch.manual_seed(0)
    namespace = {"torch": torch}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(SETUP + seed, namespace)
        try:
            exec(code, namespace)
        except (RuntimeError, TypeError, IndexError, NotImplementedError, ValueError):
            return None
    found: object = namespace["x"]
    return found if isinstance(found, torch.Tensor) else None


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", METHODS)
def test_the_new_tensor_is_what_the_write_would_have_left(name: str) -> None:
    tried = 0
    for seed in ("", "x, y = k.clone(), k + 1\n", "x, y = b, c\n"):
        for arguments in ARGUMENTS:
            code = f"x.{name}({arguments})"
            expected = works(code, seed)
            if expected is None:
                continue
            program = program_of(code)
            text = result(out_of_place(program, at(program, code, 2)))
            assert text is not None and text.startswith("x = "), code
            got = works(f"old = x\n{text}", seed)
            assert got is not None, text
            assert got.shape == expected.shape
            same_type = got.dtype == expected.dtype
            # Arithmetic of integers and floats promotes where the in-place form refused to.
            assert same_type or not expected.dtype.is_floating_point, text
            assert torch.equal(got.to(expected.dtype), expected) or got.isnan().any(), text
            tried += 1
            break
    if not tried:
        pytest.skip(f"no arguments fit {name}")


def test_most_methods_were_tried() -> None:
    assert len(METHODS) > 150
    assert not NOT_WRITES & set(METHODS)


POSITIONS = {
    "torch.nn.functional.relu": 1,
    "torch.nn.functional.threshold": 3,
    "torch.nn.functional.conv2d": None,
    "torch.nn.functional.softplus": None,
    "torch.nn.ReLU": 0,
    "torch.nn.modules.activation.Hardtanh": 2,
    "torch.nn.Linear": None,
    "torch.nn.nothing": None,
    "functools.partial": None,
}


@pytest.mark.parametrize("name", POSITIONS)
def test_where_the_flag_stands(name: str) -> None:
    assert inplace_position(name) == POSITIONS[name]
