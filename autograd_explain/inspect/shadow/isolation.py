"""Keeps what the walk shares with the user's session as it was."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch.autograd import forward_ad
from torch.utils._python_dispatch import _disable_current_modes

from ...isolation.generators import kept
from ...isolation.silence import silenced
from .replacements import InferenceMode


@contextmanager
def undisturbed() -> Iterator[None]:
    """Generators, grad mode, modes, hooks, defaults and warnings as in a fresh kernel, put back.

    The walk starts with the first cell, so it starts without what later cells have switched on;
    and the user's own hooks and modes must not see what it does.
    """
    with ExitStack() as stack:
        for context in (kept(), _settings(), _function_modes(), _saved_hooks()):
            stack.enter_context(context)
        stack.enter_context(_module_hooks())
        stack.enter_context(_without_dynamo())
        stack.enter_context(_disable_current_modes())
        # Our own looking is hidden from function modes; stand-ins on `meta` are made by one.
        stack.enter_context(torch._C._EnableTorchFunction())
        stack.enter_context(silenced())
        stack.enter_context(torch.inference_mode(False))
        with torch.enable_grad(), torch.autocast("cpu", enabled=False), _left_open():
            yield


@contextmanager
def _left_open() -> Iterator[None]:
    """Contexts that the walk entered and did not leave: streams, levels, modes of NumPy's."""
    numpy: Any = sys.modules.get("numpy")
    streams, level = (sys.stdin, sys.stdout, sys.stderr), forward_ad._current_level
    floating = None if numpy is None else (numpy.geterr(), numpy.get_printoptions())
    try:
        yield
    finally:
        InferenceMode.end_all()
        while forward_ad._current_level > level:
            forward_ad.exit_dual_level()  # type: ignore[no-untyped-call]
        sys.stdin, sys.stdout, sys.stderr = streams
        if floating is not None:
            numpy.seterr(**floating[0])
            numpy.set_printoptions(**floating[1])


@contextmanager
def _settings() -> Iterator[None]:
    dtype, grad = torch.get_default_dtype(), torch.is_grad_enabled()
    anomaly, check_nan = torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()
    torch.set_anomaly_enabled(False)
    try:
        yield
    finally:
        torch.set_anomaly_enabled(anomaly, check_nan)
        torch.set_grad_enabled(grad)
        torch.set_default_dtype(dtype)


@contextmanager
def _function_modes() -> Iterator[None]:
    """No TorchFunctionMode, `torch.set_default_device` among them, and none left behind."""
    taken: list[Any] = []
    while torch._C._len_torch_function_stack():
        taken.append(torch._C._pop_torch_function_stack())
    try:
        yield
    finally:
        while torch._C._len_torch_function_stack():
            torch._C._pop_torch_function_stack()
        for mode in reversed(taken):
            torch._C._push_on_torch_function_stack(mode)


@contextmanager
def _saved_hooks() -> Iterator[None]:
    """No saved_tensors_hooks of the session, and none left behind."""
    taken = _take_saved_hooks()
    try:
        yield
    finally:
        _take_saved_hooks()
        for pack, unpack in reversed(taken):
            torch._C._autograd._push_saved_tensors_default_hooks(pack, unpack)


def _take_saved_hooks() -> list[tuple[Any, Any]]:
    autograd: Any = torch._C._autograd
    taken = []
    while (top := autograd._top_saved_tensors_default_hooks(False)) is not None:
        taken.append(top)
        autograd._pop_saved_tensors_default_hooks()
    return taken


@contextmanager
def _without_dynamo() -> Iterator[None]:
    """Operations on meta tensors would load torch.compile for the sake of a decorator.

    torch._compile._disable_dynamo (2.1 to 2.13) imports torch._dynamo, two seconds and a variable
    in the environment, to wrap a function once.  Where nobody has loaded it, the walk goes without,
    and what was wrapped meanwhile is unwrapped again.
    """
    if "torch._dynamo" in sys.modules:
        yield
        return
    wrapped: list[Any] = []

    def disable(function: Any, *args: Any, **kwargs: Any) -> Any:
        wrapped.append(function)
        return function

    stand_in: Any = types.ModuleType("torch._dynamo")
    stand_in.disable = disable
    sys.modules["torch._dynamo"] = stand_in
    try:
        yield
    finally:
        if sys.modules.get("torch._dynamo") is stand_in:
            del sys.modules["torch._dynamo"]
        if vars(torch).get("_dynamo") is stand_in:
            del vars(torch)["_dynamo"]
        for function in wrapped:
            vars(function).pop("__dynamo_disable", None)


@contextmanager
def _module_hooks() -> Iterator[None]:
    """Hooks that the user registered for all modules run for none of the stand-ins."""
    owner: Any = torch.nn.modules.module
    tables = [v for n, v in vars(owner).items() if n.startswith("_global_") and _is_table(v)]
    kept = [(table, list(table.items())) for table in tables]
    for table in tables:
        table.clear()
    try:
        yield
    finally:
        for table, items in kept:
            table.clear()
            table.update(items)


def _is_table(value: Any) -> bool:
    return isinstance(value, dict)
