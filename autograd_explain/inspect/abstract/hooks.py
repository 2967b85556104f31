"""The hooks that twin code calls: each operation is judged, executed on stand-ins and noted."""

from __future__ import annotations

import operator
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch

from .policy import is_twin_function, is_twin_module, may_change
from .site import Site
from .trace import Step, Trace, Write, sequence_number, storage_of, tensors_in, version_of
from .values import UNKNOWN, Blank, ReadFloat, ReadInt, Unknown, read
from .walk import Walk

_BLANK = Blank()
_READS = (ReadFloat, ReadInt)
_SIMPLE = (int, float, str, bool, type(None), bytes)
#: Attributes of tensors that are plain facts: reading them makes nothing.
_FACTS = frozenset(
    """shape dtype device requires_grad is_leaf grad_fn ndim layout names itemsize nbytes is_cuda
    is_sparse retains_grad output_nr _version is_quantized is_meta""".split()
)
_OPERATOR_NAMES = {
    "truediv": "div", "floordiv": "floor_divide", "mod": "remainder", "lshift": "__lshift__",
    "rshift": "__rshift__", "and_": "bitwise_and", "or_": "bitwise_or", "xor": "bitwise_xor",
    "invert": "bitwise_not",
}  # fmt: skip


class Hooks:
    """The functions behind the names `_ag_…` of twin code."""

    def __init__(self, walk: Walk) -> None:
        self.walk = walk
        self.trace: Trace = walk.trace
        self.sites: list[Site] = walk.sites

    def table(self) -> dict[str, Any]:
        """Name in twin code -> function."""
        prefix = "hook_"
        found = {
            f"_ag_{n[len(prefix):]}": getattr(self, n) for n in dir(self) if n.startswith(prefix)
        }
        return {**found, "_ag_Exception": Exception, "_ag_slice": slice}

    # -- calls --------------------------------------------------------------------------------

    def hook_call(self, index: int, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        return self.perform(self.sites[index], function, args, kwargs)

    def hook_method(self, index: int, owner: Any, name: str, /, *args: Any, **kwargs: Any) -> Any:
        site = self.sites[index]
        if type(owner) is Unknown:
            return self.walk.unknown_call(site, name, args, kwargs)
        function = self.lookup(site, owner, name)
        return self.perform(site, function, args, kwargs, name)

    def perform(
        self, site: Site, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any],
        name: str = "",
    ) -> Any:  # fmt: skip
        """Calls a function for the user's call expression at `site`."""
        walk = self.walk
        special = walk.special(function)
        if special is not None:
            return self.run(site, special, args, kwargs, name or _name_of(function))
        if type(function) is Unknown:
            return walk.unknown_call(site, name, args, kwargs)
        if is_twin_function(getattr(function, "__func__", function)) or is_twin_module(function):
            return self.enter(site, function, args, kwargs)
        if type(function) is torch.nn.Sequential and len(args) == 1 and not kwargs:
            return self.sequence(site, function, args[0])
        if not walk.policy.allows(function):
            function = walk.twin_of(function)
            if type(function) is Unknown:
                return walk.unknown_call(site, name, args, kwargs)
        return self.run(site, function, args, kwargs, name or _name_of(function))

    def enter(
        self, site: Site, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """A call of the user's own function: its inside is noted, not the call."""
        walk = self.walk
        walk.arrive(site, (*args, *kwargs.values()))
        walk.spend(2)
        walk.stack.append(site)
        try:
            return function(*args, **kwargs)
        except Exception as error:
            return walk.failed(site, error)
        finally:
            walk.stack.pop()

    def sequence(self, site: Site, modules: torch.nn.Sequential, value: Any) -> Any:
        """A Sequential, module by module: each is an operation of its own at the same place."""
        for module in modules:
            value = self.perform(site, module, (value,), {})
        return value

    def run(
        self, site: Site, function: Callable[..., Any], args: tuple[Any, ...],
        kwargs: dict[str, Any], name: str,
    ) -> Any:  # fmt: skip
        """Executes one operation and notes what it made and wrote."""
        walk = self.walk
        owner = getattr(function, "__self__", None)
        op = _operation(function, name, kwargs)
        inputs = (*args, *kwargs.values()) if owner is None else (owner, *args, *kwargs.values())
        walk.arrive(site, inputs, op, owner)
        touched = walk.touchable(function, inputs, op)
        walk.spend(8 if touched else 1)
        versions = [version_of(t) for t in touched]
        first, noted = sequence_number(), len(self.trace.writes)
        walk.stack.append(site)
        try:
            args, kwargs = walk.prepared(function, args, kwargs)
            result = function(*args, **kwargs)
        except Exception as error:
            return walk.failed(site, error)
        finally:
            walk.stack.pop()
        last = sequence_number()
        walk.measure(result)
        writes = self.written(touched, versions, noted)
        return self.note(site, op, inputs, result, first, last, writes)

    def written(
        self, touched: list[torch.Tensor], versions: list[int], noted: int
    ) -> list[tuple[torch.Tensor, int, int]]:
        """Whose versions moved, less what inner steps have noted already."""
        moved = [
            (t, before, after)
            for t, before in zip(touched, versions)
            if (after := version_of(t)) != before
        ]
        if not moved or noted == len(self.trace.writes):
            return moved
        inner = {storage_of(w.tensor) for w in self.trace.writes[noted:]}
        return [m for m in moved if storage_of(m[0]) not in inner]

    def note(
        self, site: Site, op: str, inputs: tuple[Any, ...], result: Any, first: int, last: int,
        writes: list[tuple[torch.Tensor, int, int]],
    ) -> Any:  # fmt: skip
        """Adds a step where the operation is worth one, and gives the result back."""
        walk = self.walk
        outputs = walk.tracked(result)
        if isinstance(result, torch.nn.Module) and not result._modules:
            outputs = tuple(result.parameters())  # a module was built, its parameters with it
        number = type(result) in (int, float)
        sources = walk.tracked(inputs) if outputs or number or writes or first != last else ()
        notable = op in _NOTABLE
        if not (outputs or writes or first != last or notable or (number and sources)):
            return result
        if number and sources and not any(isinstance(s, torch.Tensor) for s in sources):
            # Arithmetic on numbers that came from tensors stays traceable.
            notable = True
        step = Step(
            len(self.trace.steps), site, tuple(walk.stack), op, sources or walk.tracked(inputs),
            outputs, first, last, torch.is_grad_enabled(), tuple(walk.loops),
        )  # fmt: skip
        seen: set[int] = set()
        for tensor, before, after in writes:
            if id(tensor) not in seen:
                seen.add(id(tensor))
                step.writes.append(Write(step, tensor, before, after))
        self.trace.add(step)
        return read(result, step) if number and sources else result

    # -- operators ------------------------------------------------------------------------------

    def hook_binary(self, index: int, name: str, left: Any, right: Any) -> Any:
        kinds = type(left), type(right)
        if Unknown in kinds:
            left, right = self.guessed(left, right)
            if type(left) is Unknown or type(right) is Unknown:
                return UNKNOWN
        elif kinds[0] in _SIMPLE and kinds[1] in _SIMPLE and name not in ("pow", "mul", "lshift"):
            self.walk.spend(1)
            try:
                return _OPERATORS[name](left, right)
            except Exception as error:
                return self.walk.failed(self.sites[index], error)
        if self.walk.too_big(name, left, right):
            return UNKNOWN
        return self.operate(self.sites[index], name, (left, right))

    def guessed(self, left: Any, right: Any) -> tuple[Any, Any]:
        """An unknown operand of a tensor operation is taken for a number."""
        if isinstance(left, torch.Tensor) and type(right) is Unknown:
            return left, 1.0
        if isinstance(right, torch.Tensor) and type(left) is Unknown:
            return 1.0, right
        return left, right

    def hook_unary(self, index: int, name: str, operand: Any) -> Any:
        return self.operate(self.sites[index], name, (operand,))

    def operate(self, site: Site, name: str, operands: tuple[Any, ...]) -> Any:
        op = name
        if any(isinstance(o, torch.Tensor) for o in operands):
            op = _OPERATOR_NAMES.get(name, name)
        return self.run_operator(site, _OPERATORS[name], operands, op)

    def run_operator(
        self, site: Site, function: Callable[..., Any], operands: tuple[Any, ...], op: str
    ) -> Any:
        walk = self.walk
        walk.arrive(site, operands, op)
        touched = tensors_in(operands, 0)
        walk.spend(8 if touched else 1)
        versions = [version_of(t) for t in touched]
        first, noted = sequence_number(), len(self.trace.writes)
        walk.stack.append(site)
        try:
            result = function(*operands)
        except Exception as error:
            return walk.failed(site, error)
        finally:
            walk.stack.pop()
        if touched:
            walk.measure(result)
        elif type(result) in _SIMPLE and not any(type(o) in _READS for o in operands):
            return result
        writes = self.written(touched, versions, noted)
        return self.note(site, op, operands, result, first, sequence_number(), writes)

    def hook_augment(self, index: int, name: str, value: Any, other: Any) -> Any:
        site = self.sites[index]
        if type(value) in _SIMPLE and type(other) in _SIMPLE:
            return self.hook_binary(index, _PLAIN[name], value, other)
        value, other = self.guessed(value, other)
        if type(value) is Unknown or type(other) is Unknown:
            return UNKNOWN if type(value) is Unknown else value
        if isinstance(value, list) and not isinstance(other, (list, tuple, torch.Tensor)):
            other = list(self.walk.bounded(other))
        if self.walk.too_big(_PLAIN[name], value, other):
            return UNKNOWN
        op = name
        if isinstance(value, torch.Tensor):
            plain = _PLAIN[name]
            op = _OPERATOR_NAMES.get(plain, plain).rstrip("_") + "_"
        result = self.run_operator(site, _OPERATORS[name], (value, other), op)
        return value if type(result) is Unknown else result

    def hook_augment_attr(self, index: int, name: str, owner: Any, attr: str, other: Any) -> None:
        site = self.sites[index]
        if type(owner) is Unknown:
            return
        value = self.hook_augment(index, name, self.lookup(site, owner, attr), other)
        self.set_attribute(site, owner, attr, value)

    def hook_augment_item(self, index: int, name: str, owner: Any, key: Any, other: Any) -> None:
        if type(owner) is Unknown:
            return
        value = self.hook_augment(index, name, self.hook_item(index, owner, key), other)
        self.set_item(self.sites[index], owner, key, value)

    # -- attributes and items ---------------------------------------------------------------------

    def hook_attr(self, index: int, owner: Any, name: str) -> Any:
        if type(owner) is Unknown:
            return UNKNOWN
        return self.lookup(self.sites[index], owner, name)

    def lookup(self, site: Site, owner: Any, name: str) -> Any:
        """`owner.name`; properties of the user's classes are entered, aliases are noted."""
        if isinstance(owner, torch.Tensor):
            return self.tensor_attribute(site, owner, name)
        walk = self.walk
        if isinstance(owner, types.ModuleType):
            return walk.module_attribute(owner, name)
        walk.spend(1)
        walk.arrive(site, (owner,), "attribute")
        walk.stack.append(site)
        try:
            found = getattr(owner, name)
        except Exception as error:
            if isinstance(error, AttributeError) and walk.lookups_may_fail():
                raise
            return walk.failed(site, error)
        finally:
            walk.stack.pop()
        return found

    def tensor_attribute(self, site: Site, tensor: torch.Tensor, name: str) -> Any:
        if name == "grad":
            self.walk.arrive(site, (tensor,), "grad")
            # Reading .grad of a non-leaf would warn.
            return tensor.grad if tensor.is_leaf or tensor.retains_grad else None
        if name in _FACTS:
            return self.walk.fact(tensor, name)
        found = getattr(torch.Tensor, name, None)
        if found is not None and callable(found):
            return getattr(tensor, name)
        if name in ("data", "T", "mT", "H", "mH", "real", "imag"):
            return self.run_operator(site, lambda t: getattr(t, name), (tensor,), name)
        try:
            return getattr(tensor, name)
        except Exception as error:
            return self.walk.failed(site, error)

    def hook_item(self, index: int, owner: Any, key: Any) -> Any:
        site = self.sites[index]
        if type(owner) is Unknown:
            return UNKNOWN
        if isinstance(owner, torch.Tensor):
            key = _without_unknown(key)
            return self.run_operator(site, operator.getitem, (owner, key), "getitem")
        self.walk.spend(1)
        self.walk.stack.append(site)
        try:
            found = owner[key]
        except Exception as error:
            if isinstance(error, (KeyError, IndexError)) and self.walk.lookups_may_fail():
                raise
            return self.walk.missing(owner, key)
        finally:
            self.walk.stack.pop()
        if self.walk.is_array(owner):
            return self.note(site, "getitem", (owner,), found, 0, 0, [])
        return found

    def hook_slot(self, index: int, owner: Any) -> Any:
        return UNKNOWN if type(owner) is Unknown else Slot(self, self.sites[index], owner)

    def set_attribute(self, site: Site, owner: Any, name: str, value: Any) -> None:
        walk = self.walk
        if not may_change(owner):
            return
        walk.arrive(site, (owner, value), "setattr")
        walk.stack.append(site)
        try:
            if isinstance(owner, torch.Tensor) and type(value) is Unknown:
                return
            setattr(owner, name, value)
        except Exception as error:
            walk.failed(site, error)
        finally:
            walk.stack.pop()
        if isinstance(owner, torch.Tensor) and name in ("data", "grad", "requires_grad"):
            self.note(site, f"{name}=", (owner, value), owner, 0, 0, [])

    def set_item(self, site: Site, owner: Any, key: Any, value: Any) -> None:
        if isinstance(owner, torch.Tensor):
            if type(value) is Unknown:
                value = 0.0
            operands = (owner, _without_unknown(key), value)
            self.run_operator(site, operator.setitem, operands, "copy_")
            return
        self.walk.spend(1)
        self.walk.stack.append(site)
        try:
            owner[key] = value
        except Exception as error:
            self.walk.failed(site, error)
        finally:
            self.walk.stack.pop()
        if self.walk.is_array(owner):
            self.note(site, "setitem", (owner, value), owner, 0, 0, [])

    def delete(self, owner: Any, key: Any) -> None:
        try:
            del owner[key]
        except Exception:
            return

    # -- control flow -------------------------------------------------------------------------------

    def hook_truth(self, index: int, value: Any) -> bool:
        if type(value) is bool:
            return self.walk.steered(self.sites[index], value)
        return self.walk.truth(self.sites[index], value)

    def hook_iterate(self, index: int, iterable: Any, shape: Any) -> Iterator[Any]:
        return self.walk.iterate(self.sites[index], iterable, shape)

    def hook_loop(self, index: int) -> None:
        self.walk.start_while(self.sites[index])

    def hook_while(self, index: int, value: Any) -> bool:
        return self.walk.go_on(self.sites[index], value)

    def hook_enter(self, index: int, context: Any) -> Any:
        return self.walk.context(self.sites[index], context)

    def hook_trying(self) -> Any:
        return self.walk.trying()

    def hook_caught(self, kinds: Any) -> Any:
        """What an `except` clause catches: unknown exception classes catch nothing."""
        if isinstance(kinds, tuple):
            return tuple(k for k in kinds if isinstance(k, type))
        if kinds is BaseException:
            return Exception
        return kinds if isinstance(kinds, type) else ()

    def hook_fault(self, index: int, error: Exception) -> None:
        self.walk.fault(self.sites[index], error)

    # -- names and definitions ------------------------------------------------------------------------

    def hook_bind(self, index: int, value: Any, name: str) -> Any:
        if type(value) is Unknown:
            return self.walk.live_value(self.sites[index], name)
        return value

    def hook_unpack(self, index: int, value: Any, shape: Any) -> Any:
        site = self.sites[index]
        if type(value) is Unknown:
            return self.walk.live_values(site, shape)
        if isinstance(value, torch.Tensor):
            return self.run_operator(site, lambda t: tuple(t.unbind(0)), (value,), "unbind")
        if "*" in shape:
            return list(self.walk.bounded(value))
        try:
            found = tuple(self.walk.bounded(value))
        except Exception as error:
            self.walk.failed(site, error)
            found = ()
        if len(found) != len(shape):
            return self.walk.live_values(site, shape)
        return found

    def hook_star(self, value: Any) -> Any:
        return () if type(value) is Unknown else self.walk.bounded(value)

    def hook_kwargs(self, value: Any) -> Any:
        return {} if type(value) is Unknown else value

    def hook_text(self, value: Any) -> Any:
        return value if isinstance(value, _SIMPLE) else _BLANK

    def hook_decorate(self, index: int, decorator: Any) -> Any:
        return self.walk.decorator(self.sites[index], decorator, self.perform)

    def hook_base(self, base: Any, name: str) -> Any:
        return self.walk.base(base, name)

    def hook_import(self, name: str, whole: bool) -> Any:
        return self.walk.imports.module(name if whole else name.partition(".")[0], name)

    def hook_import_from(self, module: str, name: str, level: int) -> Any:
        return self.walk.imports.member(module, name, level)

    def hook_import_all(self, module: str, level: int) -> None:
        self.walk.globals.update(self.walk.imports.everything(module, level))


class Slot:
    """The left side of an assignment: `slot.name = v`, `slot[key] = v` and their `del`."""

    __slots__ = ("_hooks", "_owner", "_site")

    def __init__(self, hooks: Hooks, site: Site, owner: Any) -> None:
        object.__setattr__(self, "_hooks", hooks)
        object.__setattr__(self, "_site", site)
        object.__setattr__(self, "_owner", owner)

    def __setattr__(self, name: str, value: Any) -> None:
        self._hooks.set_attribute(self._site, self._owner, name, value)

    def __delattr__(self, name: str) -> None:
        if may_change(self._owner):
            try:
                delattr(self._owner, name)
            except Exception:
                return

    def __setitem__(self, key: Any, value: Any) -> None:
        self._hooks.set_item(self._site, self._owner, key, value)

    def __delitem__(self, key: Any) -> None:
        self._hooks.delete(self._owner, key)


def _without_unknown(key: Any) -> Any:
    if type(key) is Unknown:
        return 0
    if isinstance(key, tuple):
        return tuple(_without_unknown(k) for k in key)
    if isinstance(key, slice):
        parts = (None if type(p) is Unknown else p for p in (key.start, key.stop, key.step))
        return slice(*parts)
    return key


def _name_of(function: Any) -> str:
    return str(getattr(function, "__name__", "") or type(function).__name__)


def _operation(function: Any, name: str, kwargs: dict[str, Any]) -> str:
    """torch's name of what a call does: `relu`, `relu_` for nn.ReLU(inplace=True), `step`."""
    if kwargs.get("inplace") is True and not name.endswith("_") and not isinstance(function, type):
        return f"{name}_"
    if isinstance(function, torch.nn.Module):
        from .names import operation_of_module

        return operation_of_module(function)
    return name


_NOTABLE = frozenset(
    """backward step zero_grad set_grad_enabled requires_grad_ retain_grad load_state_dict item
    tolist numpy detach_ eval train register_hook grad no_grad inference_mode enable_grad""".split()
)
_PLAIN = {
    "iadd": "add", "isub": "sub", "imul": "mul", "itruediv": "truediv", "ifloordiv": "floordiv",
    "imod": "mod", "ipow": "pow", "imatmul": "matmul", "iand": "and_", "ior": "or_",
    "ixor": "xor", "ilshift": "lshift", "irshift": "rshift",
}  # fmt: skip
_OPERATORS: dict[str, Callable[..., Any]] = {
    name: getattr(operator, name)
    for name in (*_PLAIN, *_PLAIN.values(), "eq", "ne", "lt", "le", "gt", "ge", "neg", "pos", "invert")
}
