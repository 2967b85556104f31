"""What the rewrites go by."""

from __future__ import annotations

from dataclasses import dataclass

from autograd_explain.model import Place


@dataclass(frozen=True)
class Details:
    """`kind` is that of the surest divergence; `draws` are the statements that draw numbers other
    than torch's, where that is it; `switch` is the call by which a library checkpoints, `opposite`
    the method that takes back what the statement to blame did before `backward`."""

    kind: str = ""
    draws: tuple[Place, ...] = ()
    switch: Place | None = None
    opposite: str = ""
    backward: Place | None = None
