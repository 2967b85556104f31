"""Keeps what the walk shares with the user's session as it was."""

from __future__ import annotations

import random
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def undisturbed() -> Iterator[None]:
    """Random generators, grad mode, default dtype, anomaly mode and warnings, put back after.

    Grad mode starts as in a fresh kernel, because the walk starts with the first cell.
    """
    numpy: Any = sys.modules.get("numpy")
    torch_state = torch.default_generator.get_state()
    python_state = random.getstate()
    numpy_state = None if numpy is None else numpy.random.get_state()
    dtype, grad = torch.get_default_dtype(), torch.is_grad_enabled()
    anomaly, check_nan = torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()
    try:
        with warnings.catch_warnings(), torch.inference_mode(False):
            warnings.simplefilter("ignore")
            torch.set_anomaly_enabled(False)
            with torch.enable_grad(), torch.autocast("cpu", enabled=False):
                yield
    finally:
        torch.set_anomaly_enabled(anomaly, check_nan)
        torch.set_grad_enabled(grad)
        torch.set_default_dtype(dtype)
        if numpy_state is not None:
            numpy.random.set_state(numpy_state)
        random.setstate(python_state)
        torch.default_generator.set_state(torch_state)
