"""What a torch function can do that is worth noting; decided once per function.

The operator schemas tell which functions write and which return aliases, so nothing here has to
know torch's operators by name, apart from the few that the schemas do not describe.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from contextlib import suppress
from enum import IntEnum
from typing import Any

import torch

Operation = tuple[int, int]  # a Kind and the number of the operation's name


class CallKind(IntEnum):
    """Why a call is looked at.  The recorder compares these as plain integers."""

    PASS = 0  #: nothing to note: sizes, flags, hooks
    CALL = 1  #: may create nodes; writes nothing
    VIEW = 2  #: may return an alias of its first argument
    WRITE = 3  #: writes its first argument
    COMPOSITE = 4  #: unknown inside: versions of all arguments are compared
    BATCH_NORM = 5  #: writes running statistics without a new version
    GET_DATA = 6
    GET_GRAD = 8
    SET_DATA = 7
    SET_GRAD = 9
    NUMPY = 10  #: hands the memory to numpy
    NUMBER = 11  #: leaves torch for Python numbers
    COPY = 12  #: torch.tensor and its like: a new leaf from a value
    LEAF = 14  #: may make a leaf that requires a gradient
    INPLACE = 15  #: writes its first argument where `inplace=True` says so
    HOOK = 16  #: code of the user's will run inside backward
    DETACH = 17  #: takes its first argument itself out of the graph


_NOTHING = frozenset(
    {
        *("dim", "ndimension", "size", "stride", "numel", "nelement", "element_size"),
        *("data_ptr", "storage", "untyped_storage", "storage_offset", "storage_type"),
        *("get_device", "retain_grad"),
        *("__len__", "__repr__", "__str__", "__format__", "__hash__", "__dir__", "__bool__"),
        *("__contains__", "__reduce_ex__", "__setstate__", "_record_function_enter_new"),
        *("_record_function_exit", "_set_grad_enabled", "is_floating_point", "is_complex"),
        *("is_tensor", "equal", "allclose", "is_same_size", "result_type", "can_cast"),
        *(
            "promote_types",
            "names",
            "has_names",
            "share_memory_",
        ),
        *("_typed_storage", "__torch_dispatch__"),
    }
)
_WRITES = frozenset(
    {
        *("__setitem__", "__iadd__", "__isub__", "__imul__", "__itruediv__", "__idiv__"),
        *("__ifloordiv__", "__imod__", "__ipow__", "__iand__", "__ior__", "__ixor__"),
        *("__ilshift__", "__irshift__"),
    }
)
_SPECIAL = {
    "batch_norm": CallKind.BATCH_NORM,
    "native_batch_norm": CallKind.BATCH_NORM,
    "instance_norm": CallKind.BATCH_NORM,
    "numpy": CallKind.NUMPY,
    "__array__": CallKind.NUMPY,
    "item": CallKind.NUMBER,
    "tolist": CallKind.NUMBER,
    "__float__": CallKind.NUMBER,
    "__int__": CallKind.NUMBER,
    "__index__": CallKind.NUMBER,
    "__complex__": CallKind.NUMBER,
    "tensor": CallKind.COPY,
    "new_tensor": CallKind.COPY,
    "as_tensor": CallKind.COPY,
    "asarray": CallKind.COPY,
    "requires_grad_": CallKind.LEAF,
    "detach_": CallKind.DETACH,
    "register_hook": CallKind.HOOK,
    "register_post_accumulate_grad_hook": CallKind.HOOK,
}
_DESCRIPTORS = {
    ("data", "__get__"): CallKind.GET_DATA,
    ("data", "__set__"): CallKind.SET_DATA,
    ("grad", "__get__"): CallKind.GET_GRAD,
    ("grad", "__set__"): CallKind.SET_GRAD,
    ("grad", "__delete__"): CallKind.SET_GRAD,
    ("requires_grad", "__set__"): CallKind.LEAF,
}
_PURE_MODULES = frozenset(
    {"torch.nn.functional", "torch._tensor", "torch.functional", "torch.overrides", "torch._C"}
)
_VIEW_PROPERTIES = frozenset({"T", "mT", "H", "mH", "real", "imag"})
_MethodWrapper = types.MethodWrapperType
_BUILTINS = (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType)


class FunctionTable:
    """Numbers for the names of operations, and each function's kind."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.known: dict[Any, Operation] = {}
        self._numbers: dict[str, int] = {}

    def number(self, name: str) -> int:
        if name not in self._numbers:
            self._numbers[name] = len(self.names)
            self.names.append(name)
        return self._numbers[name]

    def learn(self, func: Callable[..., Any]) -> Operation:
        """Decide about a function that was not seen before."""
        try:
            kind = classify(func)
        except Exception:  # it must run all the same: look at all its arguments
            kind = CallKind.COMPOSITE
        found = (int(kind), self.number(_name(func)))
        with suppress(TypeError):  # an unhashable callable of somebody's
            self.known[func] = found
        return found


def classify(func: Callable[..., Any]) -> CallKind:
    """What calling this torch function may do."""
    if type(func) is _MethodWrapper:
        return _classify_property(func)
    name = getattr(func, "__name__", "")
    if func in _backward_functions():
        return CallKind.PASS  # seen on its way to the engine
    if name in _SPECIAL:
        return _SPECIAL[name]
    if name in _NOTHING or name.startswith("is_"):
        return CallKind.PASS
    if name in _WRITES or (name.endswith("_") and not name.endswith("__")):
        # A Python function such as nn.init.normal_ may name its tensor by keyword.
        return CallKind.COMPOSITE if isinstance(func, types.FunctionType) else CallKind.WRITE
    if isinstance(func, types.FunctionType):
        return _classify_python(func)
    return _classify_by_schema(name)


def _classify_python(func: types.FunctionType) -> CallKind:
    """torch's own Python functions write nothing unless a parameter says so; others may."""
    if isinstance(inspect.unwrap(func), _BUILTINS):
        return _classify_by_schema(func.__name__)  # Tensor.__pow__ wraps TensorBase.pow
    parameters = inspect.signature(func).parameters
    if "inplace" in parameters:
        return CallKind.INPLACE
    if func.__module__ not in _PURE_MODULES or "max_norm" in parameters:
        return CallKind.COMPOSITE
    return CallKind.VIEW if _classify_by_schema(func.__name__) is CallKind.VIEW else CallKind.CALL


def _classify_property(func: Any) -> CallKind:
    name = getattr(func.__self__, "__name__", "")
    if name in _VIEW_PROPERTIES and func.__name__ == "__get__":
        return CallKind.VIEW
    return _DESCRIPTORS.get((name, func.__name__), CallKind.PASS)


def _classify_by_schema(name: str) -> CallKind:
    if name.startswith("__") and name.endswith("__"):
        # Operators keep their ATen name: __add__ is add, __radd__ is radd or add.
        inner = name[2:-2]
        names = [name, inner, inner.removeprefix("r")]
    else:
        names = [name]
    schemas = [s for n in names for s in torch._C._jit_get_schemas_for_operator(f"aten::{n}")]
    if not schemas:
        return CallKind.COMPOSITE
    if any({"layout", "pin_memory"} <= {a.name for a in s.arguments} for s in schemas):
        return CallKind.CALL if name in ("to", "_to_copy") else CallKind.LEAF
    if any(_writes(a) for s in schemas for a in s.arguments if not a.is_out):
        return CallKind.COMPOSITE
    if any(_aliases(r) for s in schemas for r in s.returns):
        return CallKind.VIEW
    return CallKind.CALL


def _writes(argument: Any) -> bool:
    return argument.alias_info is not None and bool(argument.alias_info.is_write)


def _aliases(result: Any) -> bool:
    return result.alias_info is not None and not result.alias_info.is_write


def _backward_functions() -> frozenset[Any]:
    return frozenset({torch.Tensor.backward, torch.autograd.backward, torch.autograd.grad})


def _name(func: Any) -> str:
    """torch's name of the operation; for a property its own name."""
    if type(func) is _MethodWrapper:
        return str(getattr(func.__self__, "__name__", "property"))
    return str(getattr(func, "__name__", type(func).__name__))
