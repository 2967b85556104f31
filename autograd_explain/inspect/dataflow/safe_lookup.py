"""Looking up what an expression is right now, without running any of the user's code.

Attributes are read from instance dictionaries, module tables and classes, never through
properties or `__getattr__`; subscripts only on plain lists, tuples, dicts and module containers.
"""

from __future__ import annotations

import builtins
import types
from collections import deque
from typing import Any

from ...isolation.type_checks import bases, class_table, is_a


class _Missing:
    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Any = _Missing()


def attribute(base: Any, name: str) -> Any:
    """`base.name`, or MISSING where reading it could run code."""
    if is_a(base, types.ModuleType):
        # Lazy modules may import on access; what is not there yet is not the user's business.
        return vars(base).get(name, MISSING)
    held = own(base)
    if name in held:
        return held[name]
    found = class_attribute(base if is_a(base, type) else type(base), name)
    if is_a(found, staticmethod) or is_a(found, classmethod):
        return found.__func__
    if is_a(found, types.FunctionType) and not is_a(base, type):
        return types.MethodType(found, base)
    if is_a(found, (property, types.GetSetDescriptorType)):
        return MISSING
    if is_a(found, types.MemberDescriptorType) and not is_a(base, type):
        try:
            return found.__get__(base)
        except AttributeError:
            return MISSING
    return found


def class_attribute(cls: type, name: str) -> Any:
    """What a class or its bases hold under a name, descriptors as they are."""
    for base in bases(cls):
        if name in class_table(base):
            return class_table(base)[name]
    return MISSING


def item(base: Any, key: int | str) -> Any:
    """`base[key]` of a plain container, or MISSING."""
    modules = _tables(base).get("_modules")
    if modules is not None and isinstance(key, int):
        children = list(modules.values())
        return children[key] if -len(children) <= key < len(children) else MISSING
    if modules is not None:
        return modules.get(str(key), MISSING)
    if is_a(base, (list, tuple, deque)) and isinstance(key, int):
        return base[key] if -len(base) <= key < len(base) else MISSING
    if is_a(base, dict) and type(base).__getitem__ is dict.__getitem__:
        return base.get(key, MISSING)
    return MISSING


def builtin(name: str) -> Any:
    return vars(builtins).get(name, MISSING)


def own(base: Any) -> dict[str, Any]:
    """What an object itself holds by name, a torch module's parameters and children included."""
    if is_a(base, type):
        return {}
    try:
        held = object.__getattribute__(base, "__dict__")
    except AttributeError:
        return {}
    if not is_a(held, dict):
        return {}
    tables = {k: v for table in _tables(base).values() for k, v in table.items()}
    return {**tables, **held}


def _tables(base: Any) -> dict[str, dict[str, Any]]:
    """A torch module's parameters, buffers and children; {} for everything else."""
    try:
        own = object.__getattribute__(base, "__dict__")
    except AttributeError:
        return {}
    if not is_a(own, dict) or "_modules" not in own or "_parameters" not in own:
        return {}
    names = ("_parameters", "_buffers", "_modules")
    return {n: own[n] for n in names if is_a(own.get(n), dict)}


def is_function(value: Any) -> bool:
    return is_a(value, types.FunctionType)


def is_tensor(value: Any) -> bool:
    import torch

    return is_a(value, torch.Tensor)


def is_module(value: Any) -> bool:
    import torch

    return is_a(value, torch.nn.Module)


def is_module_class(cls: type) -> bool:
    import torch

    return issubclass(cls, torch.nn.Module)
