"""Messages between the session and its children.

A child has run the user's code, which may have written to any pipe it has: what arrives is read
as data.  Only our own records and enumerations, tensors, arrays and plain values are built; a
pickle that names anything else is refused, and so is one that is too long.
"""

from __future__ import annotations

import dataclasses
import enum
import importlib
import io
import os
import pickle
import struct
from typing import Any

_HEADER = struct.Struct("!Q")
_CHUNK = 1 << 20
_PACKAGE = __name__.partition(".")[0]
#: What plain values, tensors and arrays are pickled with.
_BUILDERS = frozenset(
    """builtins.set builtins.frozenset builtins.complex builtins.bytearray builtins.range
    builtins.slice collections.OrderedDict collections.deque _codecs.encode
    torch._utils._rebuild_tensor_v2 torch._utils._rebuild_parameter torch.Size torch.device
    torch.nn.parameter.Parameter torch.Tensor
    numpy.ndarray numpy.dtype numpy.core.multiarray._reconstruct numpy.core.multiarray.scalar
    numpy._core.multiarray._reconstruct numpy._core.multiarray.scalar
    numpy._core.numeric._frombuffer numpy.core.numeric._frombuffer""".split()
)
LONGEST = 2 << 30  #: bytes of a message with gradients


def encode(message: object) -> bytes:
    data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    return _HEADER.pack(len(data)) + data


def decode(data: bytes) -> Any:
    """The message that a pickle holds; raises pickle.UnpicklingError where it holds more."""
    try:
        return _Records(io.BytesIO(data)).load()
    except pickle.UnpicklingError:
        raise
    except Exception as error:  # a damaged pickle raises almost anything
        raise pickle.UnpicklingError(f"{type(error).__name__}: {error}") from None


def write_message(fd: int, message: object) -> None:
    view = memoryview(encode(message))
    while view:
        view = view[os.write(fd, view) :]


def read_message(fd: int) -> Any:
    """The next message, or None when the other side is gone."""
    head = _read_exactly(fd, _HEADER.size)
    if head is None:
        return None
    body = _read_exactly(fd, _HEADER.unpack(head)[0])
    return None if body is None else decode(body)


def next_message(buffer: bytearray, longest: int) -> bytes | None:
    """Take the first whole message out of what has arrived."""
    if len(buffer) < _HEADER.size:
        return None
    (size,) = _HEADER.unpack_from(buffer)
    if size > longest:
        raise pickle.UnpicklingError(f"a message of {size} bytes")
    end = _HEADER.size + size
    if len(buffer) < end:
        return None
    found = bytes(buffer[_HEADER.size : end])
    del buffer[:end]
    return found


def _read_exactly(fd: int, size: int) -> bytes | None:
    data = bytearray()
    while len(data) < size:
        part = os.read(fd, min(size - len(data), _CHUNK))
        if not part:
            return None
        data += part
    return bytes(data)


class _Records(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if f"{module}.{name}" in _BUILDERS:
            return super().find_class(module, name)
        if f"{module}.{name}" == "torch.storage._load_from_bytes":
            return _storage
        if f"{module}.{name}" == "builtins.getattr":  # so Python 3.11.0 to 3.11.3 name a member
            return _member
        if module.startswith(f"{_PACKAGE}."):
            found = getattr(importlib.import_module(module), name, None)
            if _is_record(found):
                return found
        if module == "torch":
            import torch

            found = getattr(torch, name, None)
            if isinstance(found, torch.dtype):
                return found
        raise pickle.UnpicklingError(f"{module}.{name} is no part of a message")


def _is_record(kind: object) -> bool:
    if not isinstance(kind, type):
        return False
    named = issubclass(kind, tuple) and hasattr(kind, "_fields")
    return dataclasses.is_dataclass(kind) or issubclass(kind, enum.Enum) or named


def _member(kind: object, name: str) -> enum.Enum:
    if isinstance(kind, type) and issubclass(kind, enum.Enum) and name in kind.__members__:
        return kind.__members__[name]
    raise pickle.UnpicklingError(f"{kind}.{name} is no part of a message")


def _storage(data: bytes) -> Any:
    """A tensor's memory, which torch pickles as a file of its own."""
    import torch

    return torch.load(io.BytesIO(data), weights_only=True)
