"""A stack or a traceback as it would be without us.

In a watched cell frames of the recorder stand between the program's line and torch.  A Python
function of torch's that asks whether a mode wants its call (`Tensor.register_hook`) is there twice:
once asking, by way of torch/overrides.py, once doing the work.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from types import FrameType

_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")
_OVERRIDES = os.path.join("torch", "overrides.py")


def without_us(frames: Sequence[FrameType]) -> list[int]:
    """Which of the frames, the outermost first, there would be without us.

    What begins with a frame of ours is an error inside us: all of it stays."""
    if frames and _is_ours(frames[0]):
        return [*range(len(frames))]
    kept: list[int] = []
    asked = False
    for number, frame in enumerate(frames):
        if _is_ours(frame):
            while kept and frames[kept[-1]].f_code.co_filename.endswith(_OVERRIDES):
                kept.pop()
                asked = True
            continue
        if asked and kept and frames[kept[-1]].f_code is frame.f_code:
            kept.pop()
        asked = False
        kept.append(number)
    return kept


def _is_ours(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(_PACKAGE)
