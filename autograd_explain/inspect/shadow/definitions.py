"""Twins of a library's functions and classes, made of the live ones.

The live function knows its code, its defaults and what it closes over, the live class its bases and
what it holds: no definition is executed again, so that no decorator, metaclass or generator of
methods runs, and of a class only the methods that are called are read.
"""

from __future__ import annotations

import abc
import collections
import dataclasses
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, Protocol

from ...isolation.type_checks import class_table, is_a
from .unknown import UNKNOWN, words

#: What a class holds that Python makes anew, or that twins lack: what Python calls when an object
#: goes would run after the walk, and a library that looks at every attribute does so for what has
#: nothing to do with tensors.
_LEFT_OUT = words(
    """__dict__ __weakref__ __del__ __getattribute__ __slots__ __abstractmethods__ _abc_impl
    __annotations__ __annotate__ __annotate_func__ __orig_bases__ __parameters__ __classcell__
    __static_attributes__ __firstlineno__ __class_getitem__ __init_subclass__ __doc__
    __subclasshook__ __is_protocol__ __protocol_attrs__"""
)
#: What a metaclass does when a class is made.
_MAKING = words("__new__ __init__ __prepare__")
_PLAIN = (int, float, str, bool, bytes, type(None))
_WITHOUT = (typing.Generic, abc.ABC, object)

Adopt = Callable[[Any], Any]


class Code(Protocol):
    """What reads a live function's source."""

    def __call__(self, live: types.FunctionType) -> types.CodeType | None: ...


class Definitions:
    """One twin for a live function, class or cell; `code` reads a function, `names` gives the
    namespace that stands for a live one, `adopt` the substitute of a value."""

    def __init__(
        self, code: Code, names: Callable[[dict[str, Any]], dict[str, Any] | None], adopt: Adopt
    ) -> None:
        self._code = code
        self._names = names
        self.adopt = adopt
        # What is known is kept with its twin, so that its id is not given to another.
        self._functions: dict[int, tuple[Any, Any]] = {}
        self._kinds: dict[int, tuple[type, Any]] = {}
        self._cells: dict[int, tuple[types.CellType, types.CellType]] = {}

    # -- functions -------------------------------------------------------------------------------

    def function(self, live: types.FunctionType) -> Any:
        """The twin of a function by its own source, or UNKNOWN."""
        known = self._functions.get(id(live))
        if known is not None:
            return known[1]
        names = self._names(live.__globals__)
        code = None if names is None else self._code(live)
        if names is None or code is None:
            self._functions[id(live)] = live, UNKNOWN
            return UNKNOWN
        cells = dict(zip(live.__code__.co_freevars, live.__closure__ or (), strict=False))
        return self._rebuilt(live, code, names, [cells.get(n) for n in code.co_freevars])

    def rebound(self, live: types.FunctionType) -> Any:
        """A wrapper that Python or torch made around a library's function, around its twin; UNKNOWN
        for one that closes over nothing of a library."""
        known = self._functions.get(id(live))
        if known is not None:
            return known[1]
        if not any(_concerns_code(cell) for cell in live.__closure__ or ()):
            return UNKNOWN
        return self._rebuilt(live, live.__code__, live.__globals__, list(live.__closure__ or ()))

    def _rebuilt(
        self,
        live: types.FunctionType,
        code: types.CodeType,
        names: dict[str, Any],
        cells: list[types.CellType | None],
    ) -> types.FunctionType:
        made = [(cell, self._made(cell)) for cell in cells]
        closure = tuple(twin for _, (twin, _) in made)
        found = types.FunctionType(code, names, live.__name__, None, closure)
        self._functions[id(live)] = live, found
        for cell, (twin, new) in made:
            if new and cell is not None:
                _fill(twin, cell, self.adopt)
        if live.__defaults__ is not None:
            found.__defaults__ = tuple(self.adopt(value) for value in live.__defaults__)
        if live.__kwdefaults__ is not None:
            found.__kwdefaults__ = {n: self.adopt(v) for n, v in live.__kwdefaults__.items()}
        found.__qualname__, found.__module__ = live.__qualname__, live.__module__
        for name, value in list(vars(live).items()):
            adopted = self.adopt(value)
            if adopted is not UNKNOWN:
                vars(found)[name] = adopted
        return found

    def _made(self, cell: types.CellType | None) -> tuple[types.CellType, bool]:
        """The twin of a variable that functions share, and whether it is new."""
        if cell is None:
            return types.CellType(UNKNOWN), False
        known = self._cells.get(id(cell))
        if known is not None:
            return known[1], False
        found = types.CellType()
        self._cells[id(cell)] = cell, found
        return found, True

    # -- classes ---------------------------------------------------------------------------------

    def kind(self, live: type) -> Any:
        """The twin of a class: its methods are read when they are first called."""
        known = self._kinds.get(id(live))
        if known is not None:
            return known[1]
        self._kinds[id(live)] = live, UNKNOWN  # its bases may lead back here
        bases = tuple(self._bases(live))
        left = _LEFT_OUT | _MAKING if issubclass(live, type) else _LEFT_OUT
        held = {n: v for n, v in class_table(live).items() if n not in left}
        if tuple in live.__bases__ and hasattr(live, "_fields"):
            bases = (self._named_tuple(live), *(b for b in bases if b is not tuple))
            held = {n: v for n, v in held.items() if n not in class_table(bases[0])}
        table = {name: self._member(live, name, value) for name, value in held.items()}
        asked = class_table(live).get("__getattribute__")
        if asked is not None and not hasattr(live, "__getattr__"):
            # Asked last, not for everything: other names for what is there (transformers' configs).
            table["__getattr__"] = Late(self, "__getattr__", asked)
        table.update(_ag_twin=True, __module__=live.__module__, __qualname__=live.__qualname__)
        table.setdefault("__class_getitem__", classmethod(_itself))
        meta = self.adopt(type(live))
        kinds = {"metaclass": meta} if isinstance(meta, type) and "_ag_twin" in vars(meta) else {}
        try:
            found = types.new_class(live.__name__, bases, kinds, lambda names: names.update(table))
        except TypeError:  # bases that only the library's metaclass brings together
            found = types.new_class(live.__name__, bases[:1], {}, lambda names: names.update(table))
        self._kinds[id(live)] = live, found
        return found

    def _bases(self, live: type) -> Iterator[type]:
        for base in live.__bases__:
            if base not in _WITHOUT and not class_table(base).get("_is_protocol"):
                found = self.adopt(base)
                if isinstance(found, type):
                    yield found

    def _named_tuple(self, live: Any) -> type:
        defaults = [self.adopt(value) for value in live._field_defaults.values()]
        made: type = collections.namedtuple(live.__name__, live._fields, defaults=defaults)  # type: ignore[misc]
        return made

    def member(self, live: Any) -> Any:
        """The substitute of what a class holds."""
        if is_a(live, staticmethod):
            return staticmethod(self.adopt(live.__func__))
        if is_a(live, classmethod):
            return classmethod(self.adopt(live.__func__))
        return self.adopt(live)

    def _member(self, kind: type, name: str, value: Any) -> Any:
        """What stands for something that a class holds."""
        if is_a(value, _PLAIN):
            return value
        if is_a(value, types.FunctionType):
            generated = self._generated(kind, value) if name == "__init__" else None
            return Late(self, name, value) if generated is None else generated
        if is_a(value, property):
            parts = (value.fget, value.fset, value.fdel)
            made: Any = [None if p is None else Deferred(self, p) for p in parts]
            return property(*made)
        if is_a(value, cached_property):
            return cached_property(Deferred(self, value.func))
        if is_a(value, (types.MemberDescriptorType, types.GetSetDescriptorType)):
            return UNKNOWN
        if name == "__dataclass_fields__":
            return value
        return Late(self, name, value)

    def _generated(self, kind: type, live: types.FunctionType) -> Any:
        """What stands for an initializer that `dataclasses` generated, None for any other.

        A metaclass may have put a function around it (transformers 5 renames old keywords): that
        one is read, and finds the substitute.
        """
        inner = live
        while is_a(wrapped := vars(inner).get("__wrapped__"), types.FunctionType):
            inner = wrapped
        if not _is_generated(inner) or "__dataclass_fields__" not in vars(kind):
            return None
        made = _initializer(dict(vars(kind)["__dataclass_fields__"]), self.adopt)
        self._functions[id(inner)] = inner, made
        self._functions[id(made)] = made, made  # who calls it may
        return made if inner is live else None


class Late:
    """What a class's twin holds under a name, made when it is first asked for."""

    def __init__(self, definitions: Definitions, name: str, live: Any) -> None:
        self._definitions = definitions
        self._name = name
        self._live = live

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        found = self._definitions.member(self._live)
        kind = type(owner) if kind is None else kind
        for base in kind.__mro__:
            if class_table(base).get(self._name) is self:
                setattr(base, self._name, found)
        binds = getattr(type(found), "__get__", None)
        if binds is None or self._name == "__new__":
            return found
        return binds(found, owner, kind)


class Deferred:
    """A function inside a descriptor, read when it is first called."""

    def __init__(self, definitions: Definitions, live: Any) -> None:
        self._definitions = definitions
        self._live = live

    def function(self) -> Any:
        """The twin of the function."""
        return self._definitions.adopt(self._live)

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        found = self.function()
        binds = getattr(type(found), "__get__", None)
        return found if binds is None else binds(found, owner, kind)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function()(*args, **kwargs)


def _itself(kind: type, item: Any) -> type:
    return kind


def _concerns_code(cell: types.CellType) -> bool:
    """Whether a variable of a wrapper holds a function, a class or an object that has some."""
    try:
        value = cell.cell_contents
    except ValueError:
        return False
    return callable(value) and not is_a(value, (types.BuiltinFunctionType,))


def _fill(twin: types.CellType, cell: types.CellType, adopt: Adopt) -> None:
    try:
        twin.cell_contents = adopt(cell.cell_contents)
    except ValueError:
        return  # nothing was assigned yet


def _is_generated(live: types.FunctionType) -> bool:
    return live.__code__.co_filename.startswith("<")


def _initializer(fields: Mapping[str, Any], adopt: Adopt) -> Callable[..., None]:
    """What `dataclasses` generates: each field from its argument or its default."""
    kinds = {n: str(getattr(f, "_field_type", "")) for n, f in fields.items()}
    given = [n for n, f in fields.items() if f.init and not kinds[n].endswith("CLASSVAR")]
    placed = [n for n in given if not getattr(fields[n], "kw_only", False)]

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        values = {**dict(zip(placed, args, strict=False)), **kwargs}
        late = []
        for name, field in fields.items():
            if kinds[name].endswith("CLASSVAR"):
                continue
            value = values[name] if name in values else _default(field, adopt)
            if kinds[name].endswith("INITVAR"):
                late.append(value)
            elif value is not dataclasses.MISSING:
                _set(self, name, value)
        ending = getattr(self, "__post_init__", None)
        if ending is not None:
            ending(*late)

    return __init__


def _default(field: Any, adopt: Adopt) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return adopt(field.default_factory)()
    return field.default if field.default is dataclasses.MISSING else adopt(field.default)


def _set(owner: Any, name: str, value: Any) -> None:
    try:
        setattr(owner, name, value)
    except dataclasses.FrozenInstanceError:
        object.__setattr__(owner, name, value)
