"""Optimizer steps that do not end as they should."""

from __future__ import annotations

import pytest
import torch
from watching import lines, watched

REFUSED = """\
w = torch.ones(2, dtype=torch.complex64, requires_grad=True)
opt = torch.optim.Adam([w], fused=True)
w.abs().sum().backward()
"""


def modes() -> int:
    return int(torch._C._len_torch_function_stack())


def test_a_step_that_raises_leaves_no_mode_behind() -> None:
    with pytest.raises(RuntimeError, match="fused"):
        watched(REFUSED + "opt.step()\n")
    assert modes() == 0


def test_what_follows_a_step_that_raised_is_watched() -> None:
    text = (
        REFUSED
        + "try:\n    opt.step()\nexcept RuntimeError:\n    pass\nx = torch.ones(2)\nx += 1\n"
    )
    recording, _ = watched(text)
    assert 9 in lines(recording, recording.log.wrote)
    assert modes() == 0
