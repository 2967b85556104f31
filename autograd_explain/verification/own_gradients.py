"""A run in which code that runs inside a backward gets gradients of its own.

Autograd may hand one gradient to several tensors: `a + b` gives both the same.  What a hook or a
custom Function's `backward` writes into it changes the others' too.  Here each gets copies, and
what it has written there is its result: that is what such a write is meant to do.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch.autograd.function import BackwardCFunction
from torch.utils.hooks import BackwardHook

from .reference import replaced, same


@contextmanager
def own_gradients(alive: Iterable[torch.Tensor]) -> Iterator[None]:
    """Run the body so; `alive` are tensors that may have hooks already."""
    for tensor in alive:
        _replace_hooks(tensor)

    def registering(original: Callable[..., Any]) -> Callable[..., Any]:
        return lambda tensor, hook: original(tensor, _of_tensor(hook))

    with ExitStack() as stack:
        stack.enter_context(replaced(torch.Tensor, "register_hook", registering))
        stack.enter_context(replaced(BackwardHook, "__init__", _of_module))
        stack.enter_context(replaced(BackwardCFunction, "apply", _of_function))
        yield


def _replace_hooks(tensor: torch.Tensor) -> None:
    with torch._C.DisableTorchFunctionSubclass():
        hooks: Any = tensor._backward_hooks or {}
    for key, hook in list(hooks.items()):
        hooks[key] = _of_tensor(hook)


def _of_tensor(hook: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(hook, assigned=())
    def run(gradient: Any) -> Any:
        (own,) = _copied((gradient,))
        returned = hook(own)
        return _result(returned, (gradient,), (own,), single=True)

    return run


def _of_module(original: Callable[..., Any]) -> Callable[..., Any]:
    def initialise(self: Any, module: Any, hooks: Any, before: Any) -> None:
        original(self, module, [*map(_behind, hooks)], [*map(_in_front, before)])

    return initialise


def _behind(hook: Callable[..., Any]) -> Callable[..., Any]:
    """A module's backward hook: it may replace what goes to the inputs."""

    def run(module: Any, given: tuple[Any, ...], came: tuple[Any, ...]) -> Any:
        own = _copied(given)
        return _result(hook(module, own, _copied(came)), given, own)

    return run


def _in_front(hook: Callable[..., Any]) -> Callable[..., Any]:
    def run(module: Any, came: tuple[Any, ...]) -> Any:
        own = _copied(came)
        return _result(hook(module, own), came, own)

    return run


def _of_function(original: Callable[..., Any]) -> Callable[..., Any]:
    def apply(node: Any, *gradients: Any) -> Any:
        return original(node, *_copied(gradients))

    return apply


def _copied(values: Sequence[Any]) -> tuple[Any, ...]:
    """Copies that have the history of what they are copies of, where one is recorded."""
    return tuple(v.clone() if isinstance(v, torch.Tensor) else v for v in values)


def _result(returned: Any, given: Sequence[Any], own: tuple[Any, ...], single: bool = False) -> Any:
    """What a hook gives: what it returned, else what it has made of its copies."""
    if returned is not None or all(map(_is_unwritten, given, own)):
        return returned
    return own[0] if single else own


def _is_unwritten(given: Any, own: Any) -> bool:
    return not isinstance(own, torch.Tensor) or same(given.detach(), own.detach())
