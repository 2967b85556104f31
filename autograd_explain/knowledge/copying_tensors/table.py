"""What each way of copying the tensor `x` gives, tried: `x` is transposed and requires grad."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch

from autograd_explain.isolation.silence import overheard

WAYS = (
    "x.detach().clone()",
    "x.clone()",
    "x.clone().detach()",
    "torch.empty_like(x).copy_(x)",
    "copy.deepcopy(x)",
    "torch.tensor(x)",
    "x.new_tensor(x)",
    "torch.tensor(x.tolist())",
)


def rows() -> Iterator[dict[str, str]]:
    with _undisturbed():
        yield from map(of, WAYS)


def of(code: str) -> dict[str, str]:
    """One row; every way copies the values into memory of its own."""
    data = torch.arange(6.0, dtype=torch.float32, device="cpu").reshape(2, 3).t()
    x = data.clone().requires_grad_()
    with overheard() as told:
        y = eval(code, {"torch": torch, "copy": copy, "x": x})
    assert y.data_ptr() != x.data_ptr() and torch.equal(y, x)
    return {
        "code": code,
        "leaf": _word(y.is_leaf),
        "grad": _word(y.requires_grad),
        "gradient": _word(_reaches(y, x)),
        "layout": _word(y.stride() == x.stride()),
        "warns": _word(bool(told)),
    }


def _reaches(y: torch.Tensor, x: torch.Tensor) -> bool:
    """Whether the gradient of a result of the copy arrives at `x`."""
    if not y.requires_grad:
        return False
    (y * 3).sum().backward()  # type: ignore[no-untyped-call]
    return x.grad is not None


def _word(value: bool) -> str:
    return "yes" if value else "no"


@contextmanager
def _undisturbed() -> Iterator[None]:
    """The session's grad mode and function modes have no say in this."""
    with ExitStack() as stack:
        stack.enter_context(torch._C.DisableTorchFunction())
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        yield
