"""What a program can change, as data that two runs of it can be compared by.

Looking runs nothing of the program's: objects are read with `object.__getattribute__` and with
the methods of the built-in types.
"""

from __future__ import annotations

import atexit
import collections
import contextlib
import ctypes
import decimal
import gc
import hashlib
import itertools
import logging
import os
import random
import resource
import signal
import stat
import sys
import threading
import types
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

_SIMPLE = (int, float, complex, str, bytes, bool, type(None), type(...), torch.dtype, torch.device)
_ITERATORS = (
    type(iter([])), type(iter(())), type(iter(range(0))), type(iter("")), itertools.count,
    enumerate, zip, map, type(reversed([])),
)  # fmt: skip
_MOST = 20_000
_DEEPEST = 60
_OWN = "autograd_explain"
_EACH = "HOSTILE_KERNEL"  #: the process of a run, which is another one each time


class Describer:
    """Values as text; one that was met before is only numbered."""

    def __init__(self) -> None:
        self._seen: dict[int, tuple[int, Any]] = {}
        self._depth = 0

    def of(self, value: Any) -> Any:
        kind = type(value)
        if kind is int and abs(value) >> 64:
            return f"int {value % (10**9 + 7)}"
        if kind in _SIMPLE:
            text = repr(value)
            return (
                text
                if len(text) < 2000
                else hashlib.sha1(text.encode(errors="replace")).hexdigest()
            )
        known = self._seen.get(id(value))
        if known is not None:
            return f"#{known[0]}"
        if len(self._seen) > _MOST or self._depth > _DEEPEST or _is_machinery(kind):
            return f"{_kind_name(kind)} …"
        self._seen[id(value)] = len(self._seen), value
        self._depth += 1
        try:
            return [_kind_name(kind), *self._parts(kind, value)]
        finally:
            self._depth -= 1

    def _parts(self, kind: type, value: Any) -> Iterator[Any]:
        if issubclass(kind, torch.Tensor):
            with torch._C.DisableTorchFunctionSubclass():
                yield from self._tensor(value)
        elif issubclass(kind, np.ndarray):
            yield [
                str(value.dtype),
                value.shape,
                hashlib.sha1(np.ndarray.tobytes(value)).hexdigest(),
            ]
        elif issubclass(kind, dict):
            yield [[self.of(k), self.of(v)] for k, v in list(dict.items(value))]
        elif issubclass(kind, (list, tuple)):
            base = list if issubclass(kind, list) else tuple
            yield [self.of(v) for v in list(base.__iter__(value))]
        elif issubclass(kind, (set, frozenset)):
            base = set if issubclass(kind, set) else frozenset
            yield sorted(
                str(type(v)) + repr(v) if type(v) in _SIMPLE else str(type(v))
                for v in base.__iter__(value)
            )
        elif issubclass(kind, collections.deque):
            yield [self.of(v) for v in collections.deque.__iter__(value)]
        elif issubclass(kind, type):
            if type.__getattribute__(value, "__module__") == "__main__":
                yield [
                    [n, self.of(v)]
                    for n, v in type.__getattribute__(value, "__dict__").items()
                    if n not in ("__dict__", "__weakref__")
                ]
            return
        else:
            yield from self._other(kind, value)
        yield from self._attributes(kind, value)

    def _held(self, name: str, value: Any) -> Any:
        """Hooks without their numbers: torch counts them over the whole process."""
        hooks = name.endswith("_hooks") and type(value) in (dict, collections.OrderedDict)
        return [self.of(v) for v in dict.values(value)] if hooks else self.of(value)

    def _tensor(self, tensor: Any) -> Iterator[Any]:
        def get(name: str) -> Any:
            return getattr(torch._C.TensorBase, name).__get__(tensor)

        yield [list(get("shape")), str(get("dtype")), get("requires_grad"), get("is_leaf")]
        with contextlib.suppress(RuntimeError):
            yield get("_version")
        with contextlib.suppress(RuntimeError):
            yield str(get("grad_fn") and get("grad_fn").name())
        if get("is_leaf"):
            yield self.of(get("grad"))
        with contextlib.suppress(RuntimeError, NotImplementedError):
            yield get("untyped_storage")().nbytes()
            yield _hash(str(get("tolist")()).encode())

    def _other(self, kind: type, value: Any) -> Iterator[Any]:
        if kind is types.FunctionType:
            cells = [c.cell_contents for c in value.__closure__ or () if c != types.CellType()]
            yield [value.__qualname__, self.of(value.__defaults__), [self.of(c) for c in cells]]
        elif kind is types.MethodType:
            yield [self.of(value.__func__), self.of(value.__self__)]
        elif kind is types.ModuleType:
            yield value.__name__
        elif kind is types.GeneratorType:
            frame = value.gi_frame
            yield (
                None
                if frame is None
                else [frame.f_lasti, [self.of(v) for v in frame.f_locals.values()]]
            )
        elif kind in _ITERATORS:
            yield self.of(value.__reduce__())
        elif kind is bytearray:
            yield value.hex()
        elif kind is torch.Generator:
            yield hashlib.sha1(value.get_state().numpy().tobytes()).hexdigest()
        elif kind is random.Random:
            yield hashlib.sha1(repr(value.getstate()).encode()).hexdigest()
        elif kind is np.random.Generator:
            yield str(value.bit_generator.state)
        elif _kind_name(kind).startswith("_thread.") and hasattr(kind, "locked"):
            yield value.locked()
        elif _kind_name(kind).startswith("_io.") and hasattr(kind, "closed"):
            yield value.closed
        elif kind is property:
            yield [self.of(value.fget), self.of(value.fset)]
        elif kind in (staticmethod, classmethod):
            yield self.of(value.__func__)

    def _attributes(self, kind: type, value: Any) -> Iterator[Any]:
        with contextlib.suppress(AttributeError):
            held = object.__getattribute__(value, "__dict__")
            if type(held) is dict and kind is not types.ModuleType:
                found = [(str(n), v) for n, v in list(held.items())]
                yield {n: self._held(n, v) for n, v in found if not _is_note(n)}
        for base in type.__dict__["__mro__"].__get__(kind):
            for name, member in list(type.__getattribute__(base, "__dict__").items()):
                if type(member) is types.MemberDescriptorType and _kind_name(base).startswith(
                    "__main__"
                ):
                    with contextlib.suppress(AttributeError):
                        yield [name, self.of(member.__get__(value))]


def _is_note(name: str) -> bool:
    return name == "__builtins__" or name.startswith(("_torchdynamo", "__dynamo"))


def _kind_name(kind: type) -> str:
    get = type.__getattribute__
    return f"{get(kind, '__module__')}.{get(kind, '__qualname__')}"


def _is_machinery(kind: type) -> bool:
    """Objects of IPython's, of ours and of processes, which hold numbers of this very run."""
    root = str(type.__getattribute__(kind, "__module__")).partition(".")[0]
    return root in ("IPython", "traitlets", "multiprocessing", "threading", "prompt_toolkit", _OWN)


def _bindings(names: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    return tuple(names), tuple(map(id, names.values()))


class Bindings:
    """Which names of loaded modules and of their classes are bound to what, when it is made."""

    def __init__(self) -> None:
        self._tables: dict[str, Mapping[str, Any]] = {}
        self._kept: dict[str, tuple[tuple[str, ...], tuple[int, ...]]] = {}
        self.modules = set(sys.modules)
        for module in self.modules:
            for name, table in _tables_of(module):
                self._tables[name] = table
                self._kept[name] = _bindings(table)

    def changed(self) -> list[str]:
        """The names that are bound otherwise now, or new, or gone."""
        found = []
        for name, table in self._tables.items():
            before = self._kept[name]
            if _bindings(table) == before:
                continue
            old = dict(zip(*before, strict=True))
            new = {n: id(v) for n, v in list(table.items())}
            differ = [n for n in {**old, **new} if old.get(n) != new.get(n)]
            found += [
                f"{name}.{n} = {type(table.get(n)).__name__}" for n in differ if n not in _MOVING
            ]
        return sorted(set(found))


#: Caches and counters of the interpreter and of libraries that any use of them moves.
_MOVING = frozenset(
    """__abc_impl__ _abc_impl __warningregistry__ last_value last_type last_traceback last_exc
    __annotations__ __doc__ _FakeScriptObject_cls ps1 ps2 ps3 __hash__""".split()
)
_UNWATCHED = (_OWN, "__main__", "__mp_main__", "IPython", "traitlets", "libcst", "hostile", "rich",
              "jinja2", "markdown_it", "pygments", "executing", "asttokens",
              "stack_data")  # fmt: skip


def _tables_of(module: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if module.partition(".")[0] in _UNWATCHED:
        return
    held = sys.modules.get(module)
    if type(held) is not types.ModuleType:
        return
    yield module, vars(held)
    for name, value in list(vars(held).items()):
        if issubclass(type(value), type) and value.__module__ == module:
            yield f"{module}.{name}", type.__getattribute__(value, "__dict__")


def state(names: Mapping[str, Any], bindings: Bindings) -> dict[str, Any]:
    """Everything in this process that a program can see and change."""
    gc.collect()
    return {
        "objects": _objects(names),
        "modules": sorted(m for m in set(sys.modules) - bindings.modules if not m.startswith(_OWN)),
        "bindings": bindings.changed(),
        **_process(),
        **_interpreter(),
        **_torch(),
        "generators": [
            _hash(torch.get_rng_state().numpy().tobytes()),
            _hash(str(np.random.get_state()).encode()),
            _hash(repr(random.getstate()).encode()),
        ],
    }


def _hash(data: bytes) -> str:
    return hashlib.sha1(data).hexdigest()


def _objects(names: Mapping[str, Any]) -> dict[str, Any]:
    describer = Describer()
    return {str(n): describer.of(v) for n, v in list(names.items()) if n not in _SHELLS}


#: The shell's names, and such of programs that hold numbers of processes and open files.
_SHELLS = frozenset(
    """__builtins__ __builtin__ get_ipython exit quit open In Out _ih _oh _dh
    __warningregistry__ kernel pid fd r out""".split()
)


def _process() -> dict[str, Any]:
    return {
        "environment": {n: v for n, v in os.environ.items() if n != _EACH},
        "environment of C": sorted(v for v in _c_environment() if not v.startswith(_EACH)),
        "folder": os.getcwd(),
        "umask": _umask(),
        "limits": [resource.getrlimit(n) for n in range(16)],
        "priority": os.getpriority(os.PRIO_PROCESS, 0),
        "signals": {str(s): _name(signal.getsignal(s)) for s in signal.valid_signals()},
        "blocked signals": sorted(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, ()))),
        "timer": [signal.getitimer(timer)[1] for timer in range(3)],
        "threads": sorted(t.name for t in threading.enumerate()),
        "files open": sorted(_files_open()),
        "children": len(children_of(os.getpid())),
        "group": [os.getpgid(0) == os.getpid(), os.getsid(0) == os.getpid()],
    }  # fmt: skip


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _c_environment() -> Iterator[str]:
    table = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), "environ")
    for i in itertools.count():
        if not table[i]:
            return
        yield (table[i] or b"").decode(errors="replace")


def _files_open() -> Iterator[str]:
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            target = os.readlink(f"/proc/self/fd/{fd}")
            if "/proc/" not in target:
                kind = target.partition(":")[0]
                yield "shared" if "/dev/shm" in target else kind if ":" in target else target


def children_of(pid: int) -> list[int]:
    """The processes that this one has started and not waited for."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            found += map(int, (task / "children").read_text().split())
    return found


def _name(value: Any) -> str:
    return str(getattr(value, "__qualname__", value)).partition(" at 0x")[0]


def _interpreter() -> dict[str, Any]:
    return {
        "path": list(sys.path),
        "arguments": list(sys.argv),
        "recursion": sys.getrecursionlimit(),
        "switching": sys.getswitchinterval(),
        "tracing": [_name(sys.gettrace()), _name(sys.getprofile()), _name(threading.excepthook)],
        "hooks": [_name(sys.excepthook), _name(sys.displayhook), _name(sys.unraisablehook)],
        "streams": [_name(type(s)) for s in (sys.stdin, sys.stdout, sys.stderr)],
        "collector": [gc.isenabled(), gc.get_threshold(), len(gc.callbacks)],
        "at exit": atexit._ncallbacks(),  # type: ignore[attr-defined]
        "warnings": [_filter(f) for f in warnings.filters],
        "logging": [len(logging.root.handlers), logging.root.level, logging.root.manager.disable],
        "decimal": [decimal.getcontext().prec, decimal.getcontext().rounding],
        "numpy": [np.geterr(), np.get_printoptions()["precision"]],
        "digits": sys.get_int_max_str_digits() if hasattr(sys, "get_int_max_str_digits") else 0,
    }


def _filter(entry: Any) -> list[str]:
    return [str(getattr(part, "pattern", getattr(part, "__name__", part))) for part in entry]


def _torch() -> dict[str, Any]:
    module: Any = torch.nn.modules.module
    top = torch._C._autograd._top_saved_tensors_default_hooks
    return {
        "torch": [
            str(torch.get_default_dtype()), torch.is_grad_enabled(),
            torch.is_inference_mode_enabled(), torch.is_autocast_enabled("cpu"),
            torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled(),
            torch.are_deterministic_algorithms_enabled(), torch.get_num_threads(),
            torch.get_float32_matmul_precision(), str(torch.get_default_device()),
            torch._C._len_torch_function_stack(), torch._C._len_torch_dispatch_stack(),
            _name(top(False)), vars(torch._tensor_str.PRINT_OPTS), torch.backends.mkldnn.enabled,
            torch.autograd.is_multithreading_enabled(), torch.autograd.forward_ad._current_level,
            torch.sparse.check_sparse_tensor_invariants.is_enabled(),
            torch.is_warn_always_enabled(),
        ],
        "hooks of modules": {n: len(v) for n, v in vars(module).items()
                             if n.startswith("_global_") and hasattr(v, "__len__")},
        "mode types": [type(torch._C._get_function_stack_at(i)).__qualname__
                       for i in range(torch._C._len_torch_function_stack())],
    }  # fmt: skip


def files(folder: Path) -> dict[str, Any]:
    """Everything in a folder: kind, rights, content."""
    found = {}
    for path in sorted(folder.rglob("*")):
        entry = path.lstat()
        content = _hash(path.read_bytes()) if stat.S_ISREG(entry.st_mode) else ""
        found[str(path.relative_to(folder))] = [oct(entry.st_mode), content]
    return found


def differences(plain: Any, ours: Any, at: str = "") -> Iterator[str]:
    """Where two states differ, as a path and the two values."""
    if plain == ours:
        return
    if isinstance(plain, dict) and isinstance(ours, dict):
        for key in sorted({*plain, *ours}, key=str):
            yield from differences(plain.get(key), ours.get(key), f"{at}/{key}")
    elif isinstance(plain, list) and isinstance(ours, list) and len(plain) == len(ours):
        for i, (a, b) in enumerate(zip(plain, ours, strict=True)):
            yield from differences(a, b, f"{at}[{i}]")
    elif (
        isinstance(plain, list)
        and isinstance(ours, list)
        and all(isinstance(v, str) for v in plain + ours)
    ):
        gone = list((collections.Counter(plain) - collections.Counter(ours)).elements())
        new = list((collections.Counter(ours) - collections.Counter(plain)).elements())
        yield f"{at}: gone {gone}, new {new}"
    else:
        yield f"{at}: {str(plain)[:150]} | {str(ours)[:150]}"
