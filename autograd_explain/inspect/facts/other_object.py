"""Objects on which `backward()` was called by mistake: what they are, and the tensors in them."""

from __future__ import annotations

import dataclasses
import numbers
import types
from collections.abc import Iterator, Mapping
from typing import Any

import torch

_MANY = 20
_CALLABLE = (types.FunctionType, types.MethodType, types.BuiltinFunctionType, type)


def is_value(found: Any) -> bool:
    """Whether it is a number or an array, which a cut graph leaves of a tensor."""
    numpy = type(found).__module__.partition(".")[0] == "numpy"
    return isinstance(found, numbers.Number) or (numpy and hasattr(found, "dtype"))


def kind_of(found: Any) -> str:
    """The variant of the texts; "" for an object of any other class."""
    if found is None:
        return "nothing"
    if is_value(found):
        return "values"
    if isinstance(found, torch.nn.Module):
        return "module"
    if isinstance(found, _CALLABLE):
        return "function"
    if isinstance(found, str):
        return "text"
    return "container" if isinstance(found, (list, tuple, dict, set)) else ""


def tensors_in(found: Any, name: str) -> Iterator[tuple[str, torch.Tensor]]:
    """The single numbers with a graph that an object holds, as the user would write them."""
    if isinstance(found, torch.nn.Module):
        return
    for path, value in list(_parts(found, name))[:_MANY]:
        if isinstance(value, torch.Tensor) and value.requires_grad and value.numel() == 1:
            yield path, value


def _parts(found: Any, name: str) -> Iterator[tuple[str, Any]]:
    if isinstance(found, Mapping) and type(found).__module__ in ("builtins", "collections"):
        yield from ((f"{name}[{k!r}]", v) for k, v in found.items() if isinstance(k, (str, int)))
    elif isinstance(found, tuple) and hasattr(found, "_fields"):
        yield from ((f"{name}.{f}", v) for f, v in zip(found._fields, found, strict=False))
    elif type(found) in (list, tuple):
        yield from ((f"{name}[{i}]", v) for i, v in enumerate(found))
    elif dataclasses.is_dataclass(found) and not isinstance(found, type):
        own = vars(found) if hasattr(found, "__dict__") else {}
        yield from ((f"{name}.{f.name}", own.get(f.name)) for f in dataclasses.fields(found))
