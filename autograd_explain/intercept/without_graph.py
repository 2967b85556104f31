"""Cells whose names reach nothing with a graph, and make nothing: autograd cannot fail in them.

The names of a cell's code are looked up and what they are bound to is followed: through containers,
the session's own functions and installed packages.  A tensor that requires no gradient is as good
as a number where the code says nothing of gradients, and of torch's own only the functions that
compute, written in C, and the types are called.  Where that is wrong and such a cell fails, its
rewrites are tried in a replay of the cells instead of in a copy of the session.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterator, Mapping
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

from ..isolation.silence import silenced
from ..program import is_installed

_NUMBERS_AND_TEXT = frozenset(
    {int, float, complex, bool, str, bytes, type(None), type(...), range, slice}
)
_ROWS = (list, tuple, set, frozenset)
#: From these, anything can be reached.
_ESCAPES = frozenset({"__main__", "gc", "importlib", "inspect", "pickle", "runpy", "sys"})
_ESCAPE_NAMES = frozenset(
    {"eval", "exec", "compile", "globals", "locals", "vars", "__import__", "breakpoint", "__dict__"}
)
#: What makes a graph of tensors, or asks for one, has this in its name.
_OF_GRAPHS = ("grad", "backward")
#: Types of torch's own that are no graph and lead to none.
_OF_TORCH = frozenset({"Tensor", "Generator", "Size", "device", "dtype"})
_IMPORT = dis.opmap["IMPORT_NAME"]
_MAX_VALUES = 50_000
_MAX_DEPTH = 8


def reaches_no_graph(text: str, names: Mapping[str, Any]) -> bool:
    """Whether none of the names that a cell's text uses leads to a tensor with a graph, or to what
    makes one, as far as that is seen."""
    if any(word in text for word in _OF_GRAPHS):
        return False
    try:
        with silenced():
            code = compile(text, "<cell>", "exec", dont_inherit=True)
        return _Search(names).is_clear(code)
    except (SyntaxError, ValueError, RecursionError):  # a magic, for instance
        return False


class _Search:
    """What the names of code are bound to, and what that holds."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names = names
        self._values = _MAX_VALUES
        self._codes: set[CodeType] = set()
        self._packages: dict[str, bool] = {}

    def is_clear(self, code: CodeType, depth: int = 0) -> bool:
        if code in self._codes:
            return True
        self._codes.add(code)
        used, imported = set(code.co_names), set(_imported(code))
        if used & _ESCAPE_NAMES or not all(map(self._is_clear_package, imported - {"torch"})):
            return False
        if any(word in text for text in (*used, *_texts(code)) for word in _OF_GRAPHS):
            return False
        torch = _torch()
        if "torch" in imported or any(self._names.get(name) is torch for name in used):
            if torch is None or not all(_is_plain(torch, name) for name in used):
                return False
        bound = (self._names[name] for name in used if name in self._names)  # or an attribute's
        inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
        values = all(self._is_clear_value(value, depth) for value in bound)
        return values and all(self.is_clear(each, depth) for each in inner)

    def _is_clear_value(self, value: Any, depth: int = 0) -> bool:
        kind = type(value)
        if kind in _NUMBERS_AND_TEXT:
            return True
        if kind.__module__ in ("torch", "torch._C") and kind.__name__ in _OF_TORCH:
            return _has_no_graph(value)
        if kind in _ROWS or kind is dict:
            return depth < _MAX_DEPTH and self._is_clear_container(value, depth + 1)
        if kind is ModuleType:
            if value is _torch():
                return True  # what is taken from it was looked at
            return self._is_clear_package(value.__name__)
        if kind is FunctionType and value.__globals__ is self._names:
            return depth < _MAX_DEPTH and self._is_clear_function(value, depth + 1)
        if kind in (FunctionType, BuiltinFunctionType, type):
            return self._is_clear_package(value.__module__)
        # An object of the standard library's may hold anything.
        home = kind.__module__
        standard = home.partition(".")[0] in sys.stdlib_module_names
        return not standard and self._is_clear_package(home)

    def _is_clear_container(self, value: Any, depth: int) -> bool:
        self._values -= len(value)
        if self._values < 0:
            return False
        parts = (value, value.values()) if type(value) is dict else (value,)
        return all(
            _NUMBERS_AND_TEXT.issuperset(map(type, part))
            or all(self._is_clear_value(item, depth) for item in part)
            for part in parts
        )

    def _is_clear_function(self, function: FunctionType, depth: int) -> bool:
        given = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
        held = [cell.cell_contents for cell in function.__closure__ or ()]
        values = all(self._is_clear_value(value, depth) for value in (*given, *held))
        return values and self.is_clear(function.__code__, depth)

    def _is_clear_package(self, module: object) -> bool:
        package = module.partition(".")[0] if isinstance(module, str) else "__main__"
        if package not in self._packages:
            self._packages[package] = _knows_no_torch(package)
        return self._packages[package]


def _torch() -> Any:
    return sys.modules.get("torch")


def _is_plain(torch: Any, name: str) -> bool:
    """Whether torch has nothing of this name, or what makes no graph."""
    value = getattr(torch, name, None)
    if isinstance(value, FunctionType):
        return value.__module__ in ("torch.functional", "torch.random")
    return not isinstance(value, (ModuleType, type)) or name in _OF_TORCH or value is torch


def _has_no_graph(value: Any) -> bool:
    torch = _torch()
    if type(value) is not torch.Tensor:
        return True
    with torch._C.DisableTorchFunction():
        return not value.requires_grad


def _texts(code: CodeType) -> Iterator[str]:
    """The texts in code, the names of keyword arguments among them."""
    for constant in code.co_consts:
        if isinstance(constant, str):
            yield constant
        elif isinstance(constant, tuple):
            yield from (part for part in constant if isinstance(part, str))


def _imported(code: CodeType) -> Iterator[str]:
    if _IMPORT in code.co_code[::2]:
        for instruction in dis.get_instructions(code):
            if instruction.opcode == _IMPORT:
                yield instruction.argval


def _knows_no_torch(package: str) -> bool:
    """Whether it is a package of Python's or an installed one that is loaded, and none of its
    modules names torch."""
    if package in sys.stdlib_module_names:
        return package not in _ESCAPES
    file = getattr(sys.modules.get(package), "__file__", None)
    if not isinstance(file, str) or not is_installed(file):
        return False
    own = package + "."
    loaded = [m for n, m in list(sys.modules.items()) if n == package or n.startswith(own)]
    return all("torch" not in vars(m) for m in loaded if isinstance(m, ModuleType))
