"""The names of a function that still runs, read without a trace.

Up to Python 3.12 `frame.f_locals` is one dict for all who ask: what it got stays alive as long as
the frame, and the function's own `locals()` is the same dict (PEP 667).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from inspect import CO_OPTIMIZED
from types import FrameType
from typing import Any

_SHARED = sys.version_info < (3, 13)
#: What a function calls that has the dict for itself.
_ASKS = frozenset({"locals", "vars", "dir", "eval", "exec"})
#: Of a dict that nobody else has: the frame's, the variable's and `getrefcount`'s own.
_OURS = 3


def names_in(frame: FrameType) -> Mapping[str, Any]:
    """What the names of a frame stand for; none where the function would see that it was asked."""
    if not (_SHARED and frame.f_code.co_flags & CO_OPTIMIZED):
        return frame.f_locals
    if not _ASKS.isdisjoint(frame.f_code.co_names):
        return {}
    held = frame.f_locals
    found = dict(held)
    if sys.getrefcount(held) <= _OURS:
        held.clear()
    return found
