"""Which releases of torch are too old for what the extension reads."""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version

#: `SavedTensor.data` and `.unpack_hook` are there from this release on: before, what an operation
#: saved cannot be read without unpacking it (torch/csrc/autograd/init.cpp).
OLDEST = (2, 10)


def too_old() -> str | None:
    """The release of torch, where it is older than `OLDEST`; torch is not imported for it."""
    release = _release()
    numbers = re.match(r"(\d+)\.(\d+)", release)
    if numbers is None or (int(numbers[1]), int(numbers[2])) >= OLDEST:
        return None
    return release


def _release() -> str:
    loaded = getattr(sys.modules.get("torch"), "__version__", None)
    if loaded is not None:
        return str(loaded)
    with suppress(PackageNotFoundError):
        return version("torch")
    return ""
