"""What the user calls a tensor: paths from their names to live tensors.

Only plain data is looked at: `vars()`, dicts, sequences, a module's own tables.  No property, no
`__getattr__`, no user code runs.  The search is breadth first, so the shortest path comes first,
and stops at a budget.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import MemberDescriptorType, ModuleType, SimpleNamespace
from typing import Any

import torch

from ...incident import LiveFrame
from ...isolation.type_checks import (
    bases,
    class_attribute,
    class_table,
    elements,
    is_a,
    items,
    table_of,
)
from ...program import is_installed, is_library, is_of_package

_HIDDEN = frozenset({"In", "Out", "exit", "quit", "get_ipython", "open"})
_MAX_OBJECTS = 50_000
_MAX_ITEMS = 2_000
_MAX_DEPTH = 6
_OF_TREE = (torch.nn.Module, torch.Tensor)
_KEYS = (str, int, bool)
#: What torch itself keeps in a module: its children, its hooks, flags.
_OF_MODULES = frozenset(f".{name}" for name in vars(torch.nn.Module()))
_SECONDS = 0.5


@dataclass(frozen=True, eq=False)
class NamedTensor:
    """A live tensor and a path that reaches it, as the user would write it."""

    name: str
    tensor: torch.Tensor


class Names:
    """The live tensors by name: the user's namespace first, then the frames of the failure; last
    those of an object of the user's that only a library's frame has, `fit(Net())`, as its own
    methods call it."""

    def __init__(
        self,
        namespace: Mapping[str, Any],
        frames: Sequence[LiveFrame] = (),
        between: Sequence[LiveFrame] = (),
    ) -> None:
        self._scopes: list[Mapping[str, Any]] = [
            {k: v for k, v in namespace.items() if not k.startswith("_") and k not in _HIDDEN}
        ]
        for live in reversed(frames):
            if live.frame.f_globals is not live.frame.f_locals:
                self._scopes.append(dict(live.frame.f_locals))
        self._between = between

    @cached_property
    def _reached(self) -> tuple[tuple[str, Any], ...]:
        """Everything that a name leads to, shortest path first."""
        found = tuple(_walk(self._scopes))
        known = {id(value) for _, value in found}
        held = (v for live in reversed(self._between) for v in live.frame.f_locals.values())
        own = next((v for v in held if _is_module_of_user(v) and id(v) not in known), None)
        return found if own is None else (*found, *_walk([{"self": own}]))

    @cached_property
    def tensors(self) -> tuple[NamedTensor, ...]:
        """Every reachable tensor, shortest path first; a tensor may appear under several names."""
        return tuple(
            NamedTensor(n, value) for n, value in self._reached if is_a(value, torch.Tensor)
        )

    def holder(self, name: str) -> Any:
        """The object of which a path's last part is an attribute, `trainer` of `trainer.centres`;
        None where it is none."""
        owner, dot, _ = name.rpartition(".")
        return next((v for n, v in self._reached if n == owner), None) if dot else None

    @cached_property
    def objects(self) -> tuple[tuple[str, Any], ...]:
        """The named objects that are no tensors but may hold some: optimizers, modules."""
        found = [(name, value) for scope in self._scopes for name, value in scope.items()]
        kinds = (torch.nn.Module, torch.optim.Optimizer)
        return tuple((n, v) for n, v in found if is_a(v, kinds))

    @property
    def held_modules(self) -> Iterator[tuple[str, torch.nn.Module]]:
        """The modules by name, those that objects of the user's hold too: `explainer.net`."""
        return ((n, value) for n, value in self._reached if is_a(value, torch.nn.Module))

    @cached_property
    def arrays(self) -> tuple[tuple[str, Any], ...]:
        """The NumPy arrays by name."""
        numpy: Any = sys.modules.get("numpy")
        kind = getattr(numpy, "ndarray", ())
        return tuple((n, value) for n, value in self._reached if kind and is_a(value, kind))

    @cached_property
    def modules(self) -> Mapping[str, tuple[str, ...]]:
        """The first name of each module that has several, with the others: `layer`, which a loop
        has left, is `layers[7]` too, and what it holds is found under its first name alone."""
        found: dict[int, list[str]] = {}
        for name, value in self._reached:
            if is_a(value, torch.nn.Module):
                found.setdefault(id(value), []).append(name)
        return {first: tuple(others) for first, *others in found.values() if others}

    def of(self, tensor: torch.Tensor) -> tuple[str, ...]:
        """Names of this very tensor, then of tensors that cover the same elements."""
        same = [n.name for n in self.tensors if n.tensor is tensor]
        cover = [n.name for n in self.tensors if covers_same_elements(n.tensor, tensor)]
        return tuple(dict.fromkeys((*same, *cover)))

    def first(self, tensor: torch.Tensor) -> NamedTensor | None:
        """What the first name of `of` stands for, None where it has no name."""
        name = next(iter(self.of(tensor)), "")
        return next((n for n in self.tensors if n.name == name), None)

    def named(self, name: str) -> torch.Tensor | None:
        """The tensor of this name, None where none has it."""
        return next((n.tensor for n in self.tensors if n.name == name), None)

    def of_aliases(self, tensor: torch.Tensor) -> tuple[str, ...]:
        """Names of tensors that share memory with it without being it (bases, other views)."""
        exact = set(self.of(tensor))
        found = [n.name for n in self.tensors if shares_memory(n.tensor, tensor)]
        return tuple(n for n in dict.fromkeys(found) if n not in exact)

    def optimizers(self) -> Iterator[tuple[str, torch.optim.Optimizer]]:
        """Every optimizer reachable from the user's names."""
        seen: set[int] = set()
        for name, value in self._reached:
            if is_a(value, torch.optim.Optimizer) and id(value) not in seen:
                seen.add(id(value))
                yield name, value

    def holders(self, tensor: torch.Tensor) -> tuple[tuple[str, torch.optim.Optimizer], ...]:
        """The optimizers that update this tensor (or the parameter whose memory it is)."""
        return tuple(
            (name, optimizer)
            for name, optimizer in self.optimizers()
            if any(
                shares_memory(parameter, tensor)
                for group in optimizer.param_groups
                for parameter in group["params"]
            )
        )


def storage_key(tensor: torch.Tensor) -> int | None:
    """Identifies a tensor's memory while it lives; None where it has none (meta, sparse …)."""
    try:
        storage = tensor.untyped_storage()
        return int(storage._cdata) if storage.nbytes() else None
    except Exception:
        return None


def shares_memory(a: torch.Tensor, b: torch.Tensor) -> bool:
    key = storage_key(a)
    return key is not None and key == storage_key(b)


def covers_same_elements(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether both look at the same elements (a transposed weight is still that weight)."""
    return (
        shares_memory(a, b)
        and a.numel() == b.numel()
        and a.storage_offset() == b.storage_offset()
        and a.dtype == b.dtype
    )


def _walk(scopes: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Any]]:
    stop = time.monotonic() + _SECONDS
    # One scope after the other: `model.state` is what the user sees, `self.state` comes second.
    for scope in scopes:
        queue: deque[tuple[str, Any, int]] = deque((n, v, 0) for n, v in scope.items())
        seen: set[int] = set()
        while queue:
            name, value, depth = queue.popleft()
            yield name, value
            if id(value) in seen or depth >= _MAX_DEPTH or is_a(value, torch.Tensor):
                continue
            seen.add(id(value))
            if len(seen) > _MAX_OBJECTS or time.monotonic() > stop:
                break
            of_module = is_a(value, torch.nn.Module)  # those of a library lie ten levels deep
            queue.extend(
                (name + step, child, depth + (not of_module or not is_a(child, _OF_TREE)))
                for step, child in _children(value)
            )


def _children(value: Any) -> Iterator[tuple[str, Any]]:
    """The parts of an object that a user would reach by `.name`, `[0]` or `['key']`."""
    if is_a(value, torch.nn.Module):
        yield from _module_children(value)
    elif is_a(value, dict):
        held = list(items(value))[:_MAX_ITEMS]
        yield from ((f"[{k!r}]", v) for k, v in held if type(k) in _KEYS)
    elif is_a(value, (list, tuple, deque)):
        fields = class_attribute(type(value), "_fields")
        # What torch returns (`torch.return_types.max`, a struct sequence) lists them elsewhere.
        returned = class_attribute(type(value), "n_fields") is not None
        fields = class_attribute(type(value), "__match_args__") if returned else fields
        for i, item in enumerate(elements(value, _MAX_ITEMS)):
            named = is_a(fields, tuple) and i < len(fields)
            yield (f".{fields[i]}" if named and fields else f"[{i}]"), item
            if named and returned:  # which is read by position as often
                yield f"[{i}]", item
    elif _is_user_object(value):
        yield from _attributes(value)
        yield from _forwarded(value)


def _forwarded(value: Any, deep: int = 2) -> Iterator[tuple[str, Any]]:
    """What an object answers with for attributes that it has not: `data.x` is kept in
    `data._store._mapping["x"]`.  Its `__getattr__` is not run."""
    if class_attribute(type(value), "__getattr__") is None:
        return
    for name, part in list(items(table_of(value)))[:_MAX_ITEMS]:
        if is_a(part, dict) and str(name).startswith("_"):
            held = list(items(part))[:_MAX_ITEMS]
            yield from ((f".{k}", v) for k, v in held if type(k) is str and k.isidentifier())
        elif deep and str(name).startswith("_") and not is_a(part, type):
            yield from _forwarded(part, deep - 1)


def _module_children(module: torch.nn.Module) -> Iterator[tuple[str, Any]]:
    own = table_of(module)
    for table in ("_parameters", "_buffers"):
        for name, value in own.get(table, {}).items():
            yield f".{name}", value
    children = own.get("_modules", {})
    indexed = is_a(module, (torch.nn.Sequential, torch.nn.ModuleList))
    keyed = is_a(module, torch.nn.ModuleDict)
    for name, value in children.items():
        if indexed and name.isdigit():
            yield f"[{name}]", value
        else:
            yield (f"[{name!r}]" if keyed else f".{name}"), value
    yield from ((n, v) for n, v in _attributes(module) if n not in _OF_MODULES)


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    own = list(table_of(value).items())[:_MAX_ITEMS]
    named = ((n, v) for n, v in own if type(n) is str and n.isidentifier())
    yield from ((f".{n}", v) for n, v in named if n[0] != "_" or _is_shown(type(value), v))
    for cls in bases(type(value)):
        for name, member in list(class_table(cls).items()):
            if type(member) is MemberDescriptorType:
                try:
                    yield f".{name}", member.__get__(value)
                except AttributeError:
                    continue


def without_item(name: str) -> str:
    """`self.rows` of `self.rows[0]`."""
    return name.rsplit("[", 1)[0] if name.endswith("]") else name


def holders(name: str) -> Iterator[str]:
    """`rows[0][1]`, `rows[0]` and `rows` of `rows[0][1]`."""
    yield name
    while (outer := without_item(name)) != name:
        yield (name := outer)


def _is_module_of_user(value: Any) -> bool:
    return is_a(value, torch.nn.Module) and not is_of_package(type(value))


def _is_user_object(value: Any) -> bool:
    """Instances of the user's own classes, of those of libraries that work on tensors (a cache, a
    distribution), and simple namespaces."""
    return not is_a(value, (type, ModuleType)) and _is_user_class(type(value))


def _is_shown(owner: type, part: Any) -> bool:
    """Whether a private attribute is a way to name its part.  How a library is made is none; the
    tensors that its objects keep have no other."""
    module = str(class_table(owner).get("__module__", ""))
    path = vars(sys.modules.get(module, sys)).get("__file__")
    if module.startswith("torch."):
        return False
    return not is_library(path or "") or is_a(part, (torch.Tensor, list, tuple, dict))


def _is_user_class(cls: type) -> bool:
    module = str(class_table(cls).get("__module__", "builtins"))
    if module == "__main__" or cls is SimpleNamespace:
        return True
    names = vars(sys.modules.get(module, sys))
    path = names.get("__file__")
    if path is None or not is_library(path):
        return path is not None
    if module.startswith("torch.distributions."):
        return True
    return is_installed(path) and not module.startswith("torch.") and _knows_torch(module)


@lru_cache(maxsize=1024)
def _knows_torch(module: str) -> bool:
    """Whether a package's module has torch under some name: `import torch as th` too."""
    return any(value is torch for value in list(vars(sys.modules[module]).values()))
