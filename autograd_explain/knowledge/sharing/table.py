"""What `y` shares with the tensor `x` or the array `a` it is made from: tried, not looked up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from typing import Any

import torch

from autograd_explain.isolation.silence import silenced

FROM_TENSOR = (
    "x.detach()",
    "x.data",
    "x.view(-1)",
    "x[:1]",
    "x[[0]]",
    "x.clone()",
    "x.detach().clone()",
    "x.cpu()",
    "x.to(x.device, x.dtype)",
    "x.to(torch.float64)",
    "x.float()",
    "x.double()",
    "x.contiguous()",
    "x.numpy()",
    "x.detach().numpy()",
    "x.detach().numpy().copy()",
    "torch.tensor(x)",
    "x.new_tensor(x)",
    "torch.as_tensor(x)",
    "torch.empty_like(x).copy_(x)",
    "torch.nn.Parameter(x)",
)
FROM_ARRAY = (
    "torch.from_numpy(a)",
    "torch.as_tensor(a)",
    "torch.as_tensor(a).double()",
    "torch.tensor(a)",
)
NEW = 5.0  #: a value that the sources do not hold


def rows() -> Iterator[dict[str, str]]:
    with _undisturbed():
        yield from map(of_tensor, FROM_TENSOR)
        if find_spec("numpy"):
            yield from map(of_array, FROM_ARRAY)


def of_tensor(code: str) -> dict[str, str]:
    """One row: `x` is a float32 leaf on the CPU that requires grad."""
    x = torch.tensor([1.0, 2.0], dtype=torch.float32, device="cpu", requires_grad=True)
    try:
        y = _made(code, x=x)
    except (RuntimeError, TypeError) as error:
        return _row(code, error=f"{type(error).__name__}")
    gradient = _reaches(y, x)
    version = x._version
    _write(y)
    shared = bool(x.detach()[0] == NEW)
    counted = _word(x._version > version) if shared else "–"
    return _row(code, _word(y is x), _word(shared), _word(gradient), counted)


def of_array(code: str) -> dict[str, str]:
    """One row: `a` is a float32 array, which has neither gradient nor version."""
    import numpy as np

    a = np.array([1.0, 2.0], dtype=np.float32)
    _write(_made(code, a=a))
    return _row(code, "no", _word(bool(a[0] == NEW)), "–", "–")


def _made(code: str, **names: Any) -> Any:
    return eval(code, {"torch": torch, **names})


def _write(y: Any) -> None:
    with torch.no_grad():
        y[0] = NEW


def _reaches(y: Any, x: torch.Tensor) -> bool:
    """Whether the gradient of a result of `y` arrives at `x`."""
    if not isinstance(y, torch.Tensor) or not y.requires_grad:
        return False
    (y * 3).sum().backward()  # type: ignore[no-untyped-call]
    return x.grad is not None


def _row(
    code: str, same: str = "–", memory: str = "–", gradient: str = "–", version: str = "–",
    error: str = "",
) -> dict[str, str]:  # fmt: skip
    same = error or same
    return {"code": code, "same": same, "memory": memory, "gradient": gradient, "version": version}


def _word(value: bool) -> str:
    return "yes" if value else "no"


@contextmanager
def _undisturbed() -> Iterator[None]:
    """The session's grad mode, function modes and warnings have no say in this."""
    with ExitStack() as stack:
        stack.enter_context(silenced())
        stack.enter_context(torch._C.DisableTorchFunction())
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        yield
