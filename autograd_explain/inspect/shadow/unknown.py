"""Values that only the walk has: unknown ones, and numbers that know their origin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def words(text: str) -> frozenset[str]:
    """A set of names written as one text."""
    return frozenset(text.split())


class Unknown:
    """A value the walk knows nothing about; whatever is done with it stays unknown.

    Its truth is what `decide` says (an arm must be taken), iteration gives a few unknowns.
    """

    __slots__ = ()
    __hash__ = object.__hash__

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            # Protocols are looked up with getattr too (`__array__`, `__torch_function__`).
            raise AttributeError(name)
        return self

    def __setattr__(self, name: str, value: object) -> None: ...

    def __call__(self, *args: object, **kwargs: object) -> Unknown:
        return self

    def __iter__(self) -> Iterator[Unknown]:
        return iter((self, self))

    def __next__(self) -> Unknown:
        return self

    def __len__(self) -> int:
        return 2

    def __bool__(self) -> bool:
        return False

    def __enter__(self) -> Unknown:
        return self

    def __exit__(self, *error: object) -> None: ...

    def __contains__(self, item: object) -> bool:
        return False

    def __getitem__(self, key: object) -> Unknown:
        return self

    def __setitem__(self, key: object, value: object) -> None: ...

    def __delitem__(self, key: object) -> None: ...

    # Without these NumPy takes it for a sequence of sequences, two long and as deep as it goes (64
    # levels, NumPy 2.4): for ever.

    def __array_function__(self, *call: object) -> Unknown:
        return self

    def __array_ufunc__(self, *call: object, **kwargs: object) -> Unknown:
        return self

    def __array__(self, *given: object, **kwargs: object) -> object:
        raise TypeError("a value that is not known")

    def __repr__(self) -> str:
        return "?"


UNKNOWN = Unknown()


def _same(self: Unknown, *other: object) -> Unknown:
    return self


_PROTOCOL = """
    add sub mul truediv floordiv mod pow matmul and or xor lshift rshift
    radd rsub rmul rtruediv rfloordiv rmod rpow rmatmul rand ror rxor
    neg pos invert abs eq ne lt le gt ge
"""

for _name in words(_PROTOCOL):
    setattr(Unknown, f"__{_name}__", _same)


class Blank:
    """What an f-string shows for a value the walk does not format."""

    def __format__(self, spec: str) -> str:
        return "?"

    __str__ = __repr__ = lambda self: "?"


class ReadFloat(float):
    """A number that was read out of a tensor: it carries the step that read it."""

    step: Any = None


class ReadInt(int):
    step: Any = None


def read(number: Any, step: Any) -> Any:
    """A plain number or truth as one that remembers its step; anything else as it is."""
    if type(number) is float:
        found: Any = ReadFloat(number)
    elif type(number) in (int, bool):
        found = ReadInt(number)
    else:
        return number
    found.step = step
    return found
