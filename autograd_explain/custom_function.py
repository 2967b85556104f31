"""Where a custom Function's `forward` runs."""

from __future__ import annotations

from types import FrameType

_APPLY = "torch/autograd/function.py"


def forward_frames(frame: FrameType | None) -> tuple[FrameType, FrameType] | None:
    """The frames of `forward` and of the `Function.apply` that called it, around `frame`.

    None where no custom Function runs.  `frame` itself is inside `forward`, or is its caller.
    """
    inner, outer = frame, frame
    while outer is not None and inner is not None:
        if outer.f_code.co_filename.replace("\\", "/").endswith(_APPLY):
            return inner, outer
        inner, outer = outer, outer.f_back
    return None
