"""The user's random generators, left where they were.

An import may draw from Python's generator (for the name of a temporary file), and what we run may
draw from torch's: the user's next random number is to be the one that would have come without us.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def kept() -> Iterator[None]:
    """Python's, NumPy's and torch's default generators are put back after the body."""
    numpy: Any = sys.modules.get("numpy.random")
    python_state = random.getstate()
    numpy_state = None if numpy is None else numpy.get_state()
    torch_state = _torch_state()
    try:
        yield
    finally:
        if torch_state is not None:
            _put_back(torch_state)
        if numpy is not None:
            numpy.set_state(numpy_state)
        random.setstate(python_state)


def _torch_state() -> Any:
    torch: Any = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "default_generator"):
        return None
    with torch._C._DisableTorchDispatch():  # the state is a tensor: no mode of the user's sees it
        return torch.default_generator.get_state()


def _put_back(state: Any) -> None:
    torch: Any = sys.modules["torch"]
    with torch._C._DisableTorchDispatch():
        torch.default_generator.set_state(state)
