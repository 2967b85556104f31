"""Where a custom Function's `forward` runs."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

_APPLY = "torch/autograd/function.py"


def forward_frames(frame: FrameType | None) -> tuple[FrameType, FrameType] | None:
    """The frames of `forward` and of what called it, around `frame`: `Function.apply` or, from
    torch 2.15 on, where that is written in C, the user's own.

    None where no custom Function runs.  `frame` itself is inside `forward`, or is its caller.
    """
    inner, outer = frame, frame
    while outer is not None and inner is not None:
        if outer.f_code.co_filename.replace("\\", "/").endswith(_APPLY):
            return inner, outer
        if outer.f_back is not None and _has_context(outer):
            return outer, outer.f_back
        inner, outer = outer, outer.f_back
    return None


def _has_context(frame: FrameType) -> bool:
    """Whether it is a `forward` whose first argument is the context of a custom Function."""
    code = frame.f_code
    if code.co_name != "forward" or code.co_argcount == 0:
        return False
    function: Any = sys.modules.get("torch.autograd.function")
    given = frame.f_locals.get(code.co_varnames[0])
    return function is not None and function.BackwardCFunction in type(given).__mro__
