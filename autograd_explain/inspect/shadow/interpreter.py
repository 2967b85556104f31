"""The hooks that twin code calls for every operation (`_ag_call`, `_ag_attr` …)."""

from __future__ import annotations

import operator
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch

from .budget import too_big
from .control_flow import Flow
from .event_log import is_array
from .imports import ShadowImports
from .operations import IN_PLACE, OPERATORS, SIMPLE, Operations
from .policy import may_change, may_read, private_copy
from .replacements import bounded
from .site import Site
from .state import ShadowState
from .unknown import UNKNOWN, Blank, Unknown, words

_BLANK = Blank()
_WIDEST = 10**8
#: Attributes of tensors that are plain facts: reading them makes nothing.
_FACTS = words(
    """shape dtype device requires_grad is_leaf grad_fn ndim layout names itemsize nbytes is_cuda
    is_sparse retains_grad output_nr _version is_quantized is_meta"""
)
_ALIASES = frozenset(("data", "T", "mT", "H", "mH", "real", "imag"))


class Hooks:
    """The functions behind the names `_ag_…` of twin code."""

    def __init__(
        self, walk: ShadowState, flow: Flow, operations: Operations, imports: ShadowImports
    ) -> None:
        self.walk = walk
        self.sites = walk.sites
        self.flow = flow
        self.operations = operations
        self.imports = imports

    def table(self) -> dict[str, Any]:
        """Name in twin code -> function."""
        prefix = "hook_"
        names = [n for n in dir(self) if n.startswith(prefix)]
        found = {f"_ag_{n[len(prefix) :]}": getattr(self, n) for n in names}
        return {**found, "_ag_Exception": Exception, "_ag_slice": slice}

    # -- calls -----------------------------------------------------------------------------------

    def hook_call(self, index: int, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        return self.operations.perform(self.sites[index], function, args, kwargs)

    def hook_method(self, index: int, owner: Any, name: str, /, *args: Any, **kwargs: Any) -> Any:
        site = self.sites[index]
        if type(owner) is Unknown:
            return self.operations.of_unknown(site, name, args, kwargs)
        if name == "__getattribute__" and type(owner) is super and len(args) == 1:
            behind = object.__getattribute__(owner, "__self__")
            return self.lookup(site, Plain(behind), str(args[0]))
        function = self.lookup(site, owner, name)
        return self.operations.perform(site, function, args, kwargs, name)

    def hook_star(self, value: Any) -> Any:
        return () if type(value) is Unknown else bounded(value)

    def hook_kwargs(self, value: Any) -> Any:
        return {} if type(value) is Unknown else value

    # -- operators -------------------------------------------------------------------------------

    def hook_binary(self, index: int, name: str, left: Any, right: Any) -> Any:
        left, right = _guessed(left, right)
        if name in ("eq", "ne") and self.sites[index].in_library and _unknown(left, right):
            return name == "ne"  # what is not known is hardly what a library compares it with
        if type(left) is Unknown or type(right) is Unknown or too_big(name, left, right):
            return UNKNOWN
        return self.operations.operate(self.sites[index], OPERATORS[name], (left, right), name)

    def hook_unary(self, index: int, name: str, operand: Any) -> Any:
        if type(operand) is Unknown:
            return UNKNOWN
        return self.operations.operate(self.sites[index], OPERATORS[name], (operand,), name)

    def hook_augment(self, index: int, name: str, value: Any, other: Any) -> Any:
        """`value += other`: what is bound to the name afterwards."""
        return self.augment(self.sites[index], name, value, other)

    def augment(self, site: Site, name: str, value: Any, other: Any) -> Any:
        value, other = _guessed(value, other)
        if type(value) is Unknown or type(other) is Unknown:
            return value
        if isinstance(value, list) and hasattr(other, "__next__"):
            other = list(bounded(other))
        if too_big(IN_PLACE[name], value, other):
            return UNKNOWN
        found = self.operations.operate(site, OPERATORS[name], (value, other), name)
        return value if type(found) is Unknown else found

    def hook_augment_attr(self, index: int, name: str, owner: Any, attr: str, other: Any) -> None:
        if type(owner) is not Unknown:
            site = self.sites[index]
            value = self.augment(site, name, self.lookup(site, owner, attr), other)
            self.set_attribute(site, owner, attr, value)

    def hook_augment_item(self, index: int, name: str, owner: Any, key: Any, other: Any) -> None:
        if type(owner) is not Unknown:
            site = self.sites[index]
            if not isinstance(owner, torch.Tensor):
                site = site.of_item
            value = self.augment(site, name, self.hook_item(index, owner, key), other)
            self.set_item(site, owner, key, value)

    # -- attributes and items --------------------------------------------------------------------

    def hook_attr(self, index: int, owner: Any, name: str) -> Any:
        return UNKNOWN if type(owner) is Unknown else self.lookup(self.sites[index], owner, name)

    def lookup(self, site: Site, owner: Any, name: str) -> Any:
        """`owner.name`; properties of the user's classes are entered, aliases are noted."""
        walk = self.walk
        if not may_read(owner, name):
            return UNKNOWN
        if isinstance(owner, torch.Tensor):
            return self.tensor_attribute(site, owner, name)
        if isinstance(owner, types.ModuleType):
            return self.imports.attribute(owner, name)
        walk.budget.spend(1)
        walk.failure.arrive(site, (owner,), "attribute")
        walk.stack.append(site)
        try:
            return private_copy(owner, getattr(owner, name))
        except Exception as error:
            # What a `__getattr__` raises is for who asked.
            looking = site.function in ("__getattr__", "__getattribute__")
            if isinstance(error, AttributeError) and (looking or walk.catches(error)):
                raise
            return walk.failed(site, error)
        finally:
            walk.stack.pop()

    def tensor_attribute(self, site: Site, tensor: torch.Tensor, name: str) -> Any:
        if name == "grad":
            self.walk.failure.arrive(site, (tensor,), "grad_attribute")
            # Reading .grad of a non-leaf would warn.
            return tensor.grad if tensor.is_leaf or tensor.retains_grad else None
        if name in _FACTS:
            return self.walk.devices.fact(tensor, name)
        if name in _ALIASES:
            return self.operations.operate(site, operator.attrgetter(name), (tensor,), name)
        try:
            return getattr(tensor, name)
        except Exception as error:
            return self.walk.failed(site, error)

    def hook_item(self, index: int, owner: Any, key: Any) -> Any:
        site, walk = self.sites[index], self.walk
        if type(owner) is Unknown:
            return UNKNOWN
        if isinstance(owner, torch.Tensor) or is_array(owner):
            operands = (owner, _without_unknown(key))
            return self.operations.operate(site, operator.getitem, operands, "__getitem__")
        if isinstance(owner, tuple):
            walk.tuples[site] = len(owner) if type(owner) is tuple else 0
        walk.budget.spend(1)
        walk.stack.append(site)
        try:
            return owner[key]
        except Exception as error:
            if isinstance(error, LookupError) and walk.catches(error):
                raise
            return walk.missing(owner, key)
        finally:
            walk.stack.pop()

    def hook_slot(self, index: int, owner: Any) -> Any:
        return UNKNOWN if type(owner) is Unknown else Slot(self, self.sites[index], owner)

    def set_attribute(self, site: Site, owner: Any, name: str, value: Any) -> None:
        walk = self.walk
        if not may_change(owner) or (isinstance(owner, torch.Tensor) and type(value) is Unknown):
            return
        walk.failure.arrive(site, (owner, value), "setattr")
        walk.stack.append(site)
        try:
            setattr(owner, name, value)
        except Exception as error:
            walk.failed(site, error)
        finally:
            walk.stack.pop()
        if isinstance(owner, torch.Tensor) and name in ("data", "grad", "requires_grad"):
            self.operations.note(site, f"{name}=", (owner, value), owner, (0, 0), [])

    def set_item(self, site: Site, owner: Any, key: Any, value: Any) -> None:
        walk = self.walk
        if isinstance(owner, torch.Tensor):
            operands = (owner, _without_unknown(key), 0.0 if type(value) is Unknown else value)
            self.operations.operate(site, operator.setitem, operands, "copy_")
            return
        walk.budget.spend(1)
        walk.stack.append(site)
        try:
            owner[key] = value
        except Exception as error:
            walk.failed(site, error)
        finally:
            walk.stack.pop()
        if is_array(owner):
            self.operations.note(site, "setitem", (owner, value), owner, (0, 0), [])

    # -- control flow ----------------------------------------------------------------------------

    def hook_truth(self, index: int, value: Any) -> bool:
        return self.flow.truth(self.sites[index], value)

    def hook_iterate(self, index: int, iterable: Any, shape: Any) -> Iterator[Any]:
        return self.flow.iterate(self.sites[index], iterable, shape)

    def hook_loop(self, index: int) -> None:
        self.flow.start_while(self.sites[index])

    def hook_while(self, index: int, value: Any) -> bool:
        return self.flow.go_on(self.sites[index], value)

    def hook_enter(self, index: int, context: Any) -> Any:
        return self.flow.context(self.sites[index], context)

    def hook_trying(self, kinds: Callable[[], Any]) -> Any:
        return self.flow.trying(kinds)

    def hook_caught(self, kinds: Any) -> Any:
        """What an `except` clause catches: unknown exception classes catch nothing."""
        if isinstance(kinds, tuple):
            return tuple(k for k in kinds if isinstance(k, type))
        if kinds is BaseException:
            return Exception
        return kinds if isinstance(kinds, type) else ()

    def hook_fault(self, index: int, error: Exception) -> None:
        self.walk.fault(error)

    # -- names and definitions -------------------------------------------------------------------

    def hook_bind(self, index: int, value: Any, name: str) -> Any:
        known = type(value) is not Unknown
        return value if known else self.walk.live_values(self.sites[index], name)

    def hook_unpack(self, index: int, value: Any, shape: Any) -> Any:
        site = self.sites[index]
        if type(value) is Unknown:
            return self.walk.live_values(site, shape)
        if isinstance(value, torch.Tensor):
            return self.operations.operate(site, lambda t: tuple(t.unbind(0)), (value,), "unbind")
        found: tuple[Any, ...] = ()
        self.walk.stack.append(site)
        try:
            found = tuple(bounded(value))
        except Exception as error:
            self.walk.failed(site, error)
        finally:
            self.walk.stack.pop()
        fits = "*" in shape or len(found) == len(shape)
        return found if fits else self.walk.live_values(site, shape)

    def hook_text(self, value: Any) -> Any:
        huge = isinstance(value, int) and abs(value) > _WIDEST  # it may be a width
        return value if isinstance(value, SIMPLE) and not huge else _BLANK

    def hook_decorate(self, index: int, decorator: Any) -> Any:
        if type(decorator) is Unknown:
            return lambda decorated: decorated

        def decorate(decorated: Any) -> Any:
            found = self.operations.perform(self.sites[index], decorator, (decorated,), {})
            return decorated if type(found) is Unknown else found

        return decorate

    def hook_base(self, base: Any, name: str) -> Any:
        return self.walk.base(base, name, str(sys._getframe(1).f_globals.get("__name__")))

    def hook_import(self, name: str, whole: bool) -> Any:
        return self.imports.module(name if whole else name.partition(".")[0], name)

    def hook_import_from(self, module: str, name: str, level: int) -> Any:
        return self.imports.member(module, name, level, _package())

    def hook_import_all(self, module: str, level: int) -> None:
        names = sys._getframe(1).f_globals
        names.update(self.imports.everything(module, level, _package()))


class Plain:
    """An object whose attributes are looked up as Python does, whatever its class does then."""

    __slots__ = ("_owner",)

    def __init__(self, owner: Any) -> None:
        self._owner = owner

    def __getattr__(self, name: str) -> Any:
        return object.__getattribute__(self._owner, name)


class Slot:
    """The left side of an assignment: `slot.name = v`, `slot[key] = v` and their `del`."""

    __slots__ = ("_hooks", "_owner", "_site")
    _hooks: Hooks
    _site: Site
    _owner: Any

    def __init__(self, hooks: Hooks, site: Site, owner: Any) -> None:
        object.__setattr__(self, "_hooks", hooks)
        object.__setattr__(self, "_site", site)
        object.__setattr__(self, "_owner", owner)

    def __setattr__(self, name: str, value: Any) -> None:
        self._hooks.set_attribute(self._site, self._owner, name, value)

    def __delattr__(self, name: str) -> None:
        if may_change(self._owner) and hasattr(self._owner, name):
            delattr(self._owner, name)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._hooks.set_item(self._site, self._owner, key, value)

    def __delitem__(self, key: Any) -> None:
        try:
            del self._owner[key]
        except (LookupError, TypeError):
            return


def _package() -> str:
    """The package of the twin code that called the hook."""
    return str(sys._getframe(2).f_globals.get("__package__") or "")


def _unknown(left: Any, right: Any) -> bool:
    return type(left) is Unknown or type(right) is Unknown


def _guessed(left: Any, right: Any) -> tuple[Any, Any]:
    """An unknown operand of a tensor operation is taken for a number."""
    if isinstance(left, torch.Tensor) and type(right) is Unknown:
        return left, 1.0
    if isinstance(right, torch.Tensor) and type(left) is Unknown:
        return 1.0, right
    return left, right


def _without_unknown(key: Any) -> Any:
    if type(key) is Unknown:
        return 0
    if isinstance(key, tuple):
        return tuple(_without_unknown(k) for k in key)
    if isinstance(key, slice):
        parts = (None if type(p) is Unknown else p for p in (key.start, key.stop, key.step))
        return slice(*parts)
    return key
