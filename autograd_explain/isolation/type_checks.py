"""What a user's object is, without asking it.

`isinstance` believes `__class__`, which may be a property: a lazy proxy would load what it stands
for.  The methods of a subclass of `dict` or `list` are the user's code, those of the built-in
type are not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import ItemsView, Mapping
from itertools import islice
from types import FunctionType, TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, overload

from ..program import is_library

if TYPE_CHECKING:
    from typing_extensions import TypeIs

T = TypeVar("T")
_SEQUENCES: tuple[Any, ...] = (list, tuple, deque)


@overload
def is_a(value: object, kinds: type[T]) -> TypeIs[T]: ...
@overload
def is_a(value: object, kinds: tuple[type[T], ...]) -> TypeIs[T]: ...
def is_a(value: object, kinds: Any) -> bool:
    """`isinstance` by the type that a value has, whatever it says of itself."""
    return issubclass(type(value), kinds)


def items(table: Mapping[Any, Any]) -> ItemsView[Any, Any]:
    """The items of a dict as it holds them, also where its class says otherwise."""
    return dict.items(table) if is_a(table, dict) else {}.items()


def elements(sequence: Any, most: int | None = None) -> list[Any]:
    """The (first) items of a list, tuple or deque as it holds them."""
    plain = next(kind for kind in _SEQUENCES if is_a(sequence, kind))
    return list(islice(plain.__iter__(sequence), most))


def bases(kind: type) -> tuple[type, ...]:
    """A class's `__mro__`, which a metaclass may have made something else."""
    found: tuple[type, ...] = type.__dict__["__mro__"].__get__(kind)
    return found


def with_subclasses(kind: type) -> set[type]:
    """A class and all that inherit from it: asked of each of a million objects, `issubclass` takes
    ten times as long as a set does."""
    found, todo = set[type](), [kind]
    while todo:
        cls = todo.pop()
        if cls not in found:
            found.add(cls)
            todo += type.__subclasses__(cls)
    return found


def class_table(kind: type) -> Mapping[str, Any]:
    """What a class itself holds by name."""
    found: Mapping[str, Any] = type.__dict__["__dict__"].__get__(kind)
    return found


def class_attribute(kind: type, name: str, without: Any = None) -> Any:
    """What a class or its bases hold under a name, descriptors as they are."""
    return next((t[name] for b in bases(kind) if name in (t := class_table(b))), without)


def message_of(error: BaseException) -> str:
    """An exception's text; one whose class says it with code of the user's is not asked."""
    says = class_attribute(type(error), "__str__")
    own = is_a(says, FunctionType) and not is_library(says.__code__.co_filename)
    return BaseException.__str__(error) if own else str(error)


def traceback_of(error: BaseException) -> TracebackType | None:
    found: TracebackType | None = _of_error("__traceback__", error)
    return found


def set_traceback(error: BaseException, traceback: TracebackType) -> None:
    BaseException.__dict__["__traceback__"].__set__(error, traceback)


def raised_from(error: BaseException) -> BaseException | None:
    """The exception that Python shows before this one."""
    hidden = _of_error("__suppress_context__", error)
    cause: BaseException | None = _of_error("__cause__", error)
    context: BaseException | None = _of_error("__context__", error)
    return cause if cause is not None else None if hidden else context


def _of_error(name: str, error: BaseException) -> Any:
    return BaseException.__dict__[name].__get__(error)


def table_of(value: object) -> dict[str, Any]:
    """An instance's own attributes, {} where it has none of its own."""
    try:
        held = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    return held if type(held) is dict else {}
