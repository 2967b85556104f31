"""What twin code may run: torch on stand-ins, Python's own types, pure standard library.

Everything else is unknown to the walk.  The rule is a positive list, because a walk must have
no effect outside itself: no file, no output, no global state, none of the user's objects.
"""

from __future__ import annotations

import builtins
import copy
import enum
import functools
import types
from collections.abc import Mapping
from typing import Any

import torch

from .instrument import TWIN
from .unknown import Unknown, words

#: Modules whose functions and classes may be called.
PURE = words(
    """math cmath operator itertools functools collections copy string dataclasses typing
    typing_extensions enum contextlib types abc numbers fractions statistics random
    heapq bisect numpy torch einops opt_einsum posixpath ntpath genericpath _collections
    _functools _operator _random _heapq _bisect _abc collections.abc inspect weakref _weakref
    time datetime"""
)
# Not `re`, whose matching may take for ever, nor `decimal`, whose context is the thread's.
#: Parts of them that act on the world or on state that outlives the walk.
_FORBIDDEN = (
    "torch.serialization", "torch.hub", "torch.distributed", "torch.multiprocessing",
    "torch.onnx", "torch.utils.tensorboard", "torch.utils.data", "torch.cuda", "torch.mps",
    "torch.xpu", "torch.profiler", "torch._dynamo", "torch._inductor", "torch.jit", "torch.package",
    "torch.utils.cpp_extension", "torch.random", "torch.library", "torch.utils.model_zoo",
    "torch.export", "torch.testing", "torch.backends", "torch.monitor", "torch.accelerator",
    "torch.nn.parallel", "torch.optim.lr_scheduler", "torch.optim.swa_utils", "torch.futures",
    "torch.utils.benchmark", "torch.utils.collect_env", "torch.utils.bottleneck", "torch.fx",
    "torch.utils.bundled_inputs", "torch.utils.hipify", "torch.ao",
    "torch.autograd.profiler", "torch.autograd.profiler_util", "torch.autograd.profiler_legacy",
    "torch.quantization", "torch._classes", "torch.overrides", "torch.utils._python_dispatch",
    "numpy.lib.format", "numpy.lib._format_impl", "numpy.lib._datasource", "typing_extensions",
    "numpy.lib._npyio_impl", "numpy.lib.npyio", "numpy.ctypeslib", "numpy.f2py", "numpy.testing",
    "numpy.distutils",
)  # fmt: skip
#: Exceptions to these: pure parts of forbidden modules.
_ALLOWED = (
    "torch.utils.data.dataset", "torch.utils.data._utils.collate", "torch.optim.swa_utils",
    "torch._dynamo.mutation_guard",  # nn.Module.__init__ and __setstate__ after torch.compile
)  # fmt: skip
_PACKAGE = __name__.rpartition(".")[0]
_STAND_INS = frozenset((f"{_PACKAGE}.replacements", f"{_PACKAGE}.shell"))
_FORBIDDEN_NAMES = words(
    """save load set_num_threads set_num_interop_threads set_printoptions set_default_device
    set_default_tensor_type set_rng_state use_deterministic_algorithms from_file share_memory_
    set_float32_matmul_precision set_warn_always set_flush_denormal fromfile tofile dump memmap
    savetxt savez savez_compressed loadtxt genfromtxt sleep register_module_forward_hook
    register_module_forward_pre_hook register_module_full_backward_hook
    register_module_backward_hook init_process_group seterr setbufsize show_config chdir
    register_module_full_backward_pre_hook register_module_buffer_registration_hook
    register_module_module_registration_hook register_module_parameter_registration_hook
    open_memmap write_array to_folder load_library register_kl register_pytree_node
    set_default_validate_args get_type_hints evaluate_forward_ref _evaluate export_chrome_trace
    __getattribute__ __subclasses__ __import__ __reduce__ __reduce_ex__"""
)
_SIGNATURES = words("getfullargspec FullArgSpec signature Signature Parameter BoundArguments")
_REFERENCES = words("ref ReferenceType proxy WeakKeyDictionary WeakValueDictionary WeakSet")
_CLOCKS = words("time time_ns perf_counter perf_counter_ns monotonic process_time struct_time")
#: Settings that the walk puts back.
_RESTORED = words("set_grad_enabled set_default_dtype set_detect_anomaly set_anomaly_enabled")
_BASES = words("_TensorBase _FunctionBase _ModuleBase _VariableFunctions _VariableFunctionsClass")
_TYPES = (
    list, dict, tuple, set, frozenset, str, bytes, bytearray, int, float, complex, bool, range,
    slice, object, type, property, staticmethod, classmethod, enumerate, zip, map, filter, reversed,
    BaseException, memoryview, types.MappingProxyType, types.SimpleNamespace, types.GeneratorType,
    super,
)  # fmt: skip
_BUILTINS = words(
    """abs all any bin bool bytearray bytes callable chr classmethod complex dict divmod enumerate
    filter float format frozenset hash hex id int isinstance issubclass iter len list map max min
    next object oct ord pow property range repr reversed round set slice sorted staticmethod str
    sum super tuple type zip"""
)


def safe_builtins() -> dict[str, Any]:
    """The builtins that twin code sees by itself; the rest is unknown to it."""
    names = {n for n in dir(builtins) if isinstance(getattr(builtins, n), type)
             and issubclass(getattr(builtins, n), BaseException)}  # fmt: skip
    constants = {"None", "True", "False", "Ellipsis", "NotImplemented", "__build_class__"}
    return {n: getattr(builtins, n) for n in names | constants | _BUILTINS}


def is_twin_function(function: Any) -> bool:
    if not isinstance(function, types.FunctionType):
        return False  # an object's own `__getattr__` is not asked
    return function.__code__.co_filename.startswith(TWIN)


def behind(function: Any) -> Any:
    """The function of a bound method; anything else as it is."""
    return function.__func__ if isinstance(function, types.MethodType) else function


def bound_to(function: Any) -> Any:
    """What a method or a built-in function belongs to, None for what belongs to nothing."""
    asks = isinstance(function, torch.nn.Module) or is_twin_class(type(function))
    return None if asks else getattr(function, "__self__", None)


def is_twin_class(kind: type) -> bool:
    return any("_ag_twin" in vars(k) for k in kind.__mro__)


def is_patched(kind: type) -> bool:
    """Whether the user put functions of their own into a class of a library."""
    return any(
        isinstance(value, types.FunctionType) and _is_main(value)
        for base in kind.__mro__
        for value in list(vars(base).values())
    )


def is_twin_module(value: Any) -> bool:
    return isinstance(value, torch.nn.Module) and is_twin_class(type(value))


class Policy:
    """Decides which callables run; answers are remembered by identity."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, bool]] = {}

    def may_import(self, name: str) -> bool:
        return name.partition(".")[0] in PURE

    def allows(self, function: Any) -> bool:
        """Whether twin code may call this object natively."""
        if isinstance(function, types.MethodType):
            return self.allows(function.__func__)
        if isinstance(function, functools.partial):
            return self.allows(function.func)
        if isinstance(function, (types.FunctionType, type)):
            known = self._known.get(id(function))
            if known is None:
                # The object is kept, so that its id is not given to another one.
                known = self._known[id(function)] = (function, self._judge(function))
            return known[1]
        return self._judge(function)

    def _judge(self, function: Any) -> bool:
        if isinstance(function, Unknown):
            return False
        if isinstance(function, types.FunctionType):
            module = str(function.__globals__.get("__name__", ""))
            return is_twin_function(function) or (
                not _is_main(function)
                and not _switches(function)
                and self._module(module, _own_name(function))
            )
        if isinstance(function, type):
            return is_twin_class(function) or self._class(function)
        if isinstance(function, _NATIVE):
            return self._native(function)
        if getattr(function, "__name__", "") in _FORBIDDEN_NAMES:
            return False  # numpy.savetxt is an object that dispatches
        if type(function).__name__ == "cython_function_or_method":
            return self._native(function)
        return self._class(type(function)) or is_twin_class(type(function))

    def _native(self, function: Any) -> bool:
        """Built-in functions and methods: judged by their module or by what they are bound to."""
        name = getattr(function, "__name__", "")
        if name in _FORBIDDEN_NAMES:
            return False
        owner = getattr(function, "__self__", None)
        if owner is None or isinstance(owner, types.ModuleType):
            module = getattr(function, "__module__", None) or getattr(owner, "__name__", "")
            owner_class = getattr(function, "__objclass__", None)
            if owner_class is not None:
                return self._class(owner_class) or is_twin_class(owner_class)
            if module == "builtins":
                return name in _BUILTINS
            return self._module(module or "torch", name)
        kind = owner if isinstance(owner, type) else type(owner)
        return self._class(kind) or is_twin_class(kind)

    def _class(self, kind: type) -> bool:
        if kind in _TYPES or issubclass(kind, BaseException):
            return True
        if kind.__name__ in _FORBIDDEN_NAMES or is_patched(kind):
            return False
        return self._module(kind.__module__, kind.__name__)

    def _module(self, module: str, name: str) -> bool:
        if name in _FORBIDDEN_NAMES:
            return False
        if module in _ALLOWED or module in _STAND_INS:
            return True
        if module == "torch.utils._pytree":
            return "register" not in name
        if any(module == f or module.startswith(f + ".") for f in _FORBIDDEN):
            return name.startswith("is_")  # what it says changes nothing
        if module == "torch._C" and name.startswith("_") and name not in _BASES:
            return False
        root = module.partition(".")[0]
        if root == "inspect":
            return name.startswith("is") or name in _SIGNATURES
        if root == "time":
            return name in _CLOCKS
        if root in ("weakref", "_weakref"):
            return name in _REFERENCES
        return root in PURE


_NATIVE = (
    types.BuiltinFunctionType, types.BuiltinMethodType, types.MethodDescriptorType,
    types.WrapperDescriptorType, types.MethodWrapperType, types.ClassMethodDescriptorType,
    types.GetSetDescriptorType,
)  # fmt: skip


def _own_name(function: types.FunctionType) -> str:
    """The name to judge by: a decorator's wrapper of a twin carries the twin's, which is free."""
    wrapped = is_twin_function(getattr(function, "__wrapped__", None))
    return function.__code__.co_name if wrapped else function.__name__


def _switches(function: types.FunctionType) -> bool:
    """Whether a function of a module sets something for the process that nobody puts back."""
    name = function.__qualname__
    return name.startswith("set_") and name not in _RESTORED


def _is_main(function: types.FunctionType) -> bool:
    return function.__globals__.get("__name__") == "__main__"


def may_change(owner: Any) -> bool:
    """Whether attributes of this object belong to the walk (and not to a library)."""
    if isinstance(owner, type):
        return is_twin_class(owner)
    if isinstance(owner, types.FunctionType):
        return is_twin_function(owner)
    if isinstance(owner, enum.Enum) or type(owner).__module__.startswith("torch.backends"):
        return False
    return not isinstance(owner, (types.ModuleType, types.BuiltinFunctionType))


_INSIDE = words(
    """__globals__ __builtins__ __subclasses__ __closure__ __code__ __loader__ __spec__ gi_frame
    cr_frame ag_frame f_globals f_locals f_builtins f_back tb_frame tb_next __self__ __func__
    __wrapped__ __objclass__"""
)


def may_read(owner: Any, name: str) -> bool:
    """Whether an attribute leads to more of the owner, and not into a library's own namespace."""
    if name == "__dict__":
        return not isinstance(owner, (types.ModuleType, types.FunctionType))
    if name in ("__self__", "__func__", "__wrapped__", "__code__"):
        return is_twin_function(behind(owner))
    return name not in _INSIDE


def private_copy(owner: Any, value: Any) -> Any:
    """A container that belongs to a library, copied: the walk may fill it without effect."""
    library = isinstance(owner, types.ModuleType) or (
        isinstance(owner, type) and not is_twin_class(owner)
    )
    return copy.copy(value) if library and isinstance(value, (dict, list, set)) else value


def module_names(module: types.ModuleType) -> Mapping[str, Any]:
    """What `from module import *` would bring."""
    public = getattr(module, "__all__", None)
    names = public if public is not None else [n for n in vars(module) if not n.startswith("_")]
    return {n: getattr(module, n) for n in names if hasattr(module, n)}
