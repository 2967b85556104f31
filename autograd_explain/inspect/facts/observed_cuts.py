"""Where a recording has seen values leave the graph between a leaf and a result."""

from __future__ import annotations

import torch

from ..history import TraceEvent
from ..scene import Scene


def observed_cuts(
    scene: Scene, leaf: torch.Tensor, roots: tuple[torch.Tensor | None, ...] = (None,)
) -> tuple[TraceEvent, ...]:
    """The calls below the leaf whose values went into one of the roots, or into anything that a
    backward went back from, the last one first; () where that was not watched."""
    recording = scene.incident.recording
    if recording is None or not leaf.is_leaf or not recording.covers(scene.incident):
        return ()
    found = (recording.cuts_behind(root, scene.program, leaf) for root in roots)
    return tuple(cut for each in found for cut in each)
