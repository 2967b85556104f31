"""Stacks and tracebacks that the program itself has formatted, without the recorder's frames.

`traceback.print_exc`, `logging.exception` and anomaly mode's traceback of the forward pass all
turn frames into text at one place, which is replaced while a cell is watched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from traceback import StackSummary
from typing import TYPE_CHECKING, Any

from ...isolation.own_frames import without_us

if TYPE_CHECKING:
    from .mode_stack import ModeStack

#: Where a `StackSummary` is made of frames: from Python 3.11 on, and before.
_PLACES = ("_extract_from_extended_frame_gen", "extract")


class FormattedStacks:
    """Frames of ours are left out of formatted stacks for as long as `presence` lasts."""

    def __init__(self, presence: ModeStack) -> None:
        self._presence = presence

    def enter(self) -> None:
        own = vars(StackSummary)
        place = next((p for p in _PLACES if isinstance(own.get(p), classmethod)), None)
        if place is not None:
            self._presence.replace(StackSummary, place, classmethod(_tidy(own[place].__func__)))


def _tidy(extract: Callable[..., StackSummary]) -> Callable[..., StackSummary]:
    def extract_without_us(
        kind: type[StackSummary], frames: Iterable[Any], *args: Any, **options: Any
    ) -> StackSummary:
        # `walk_stack(None)` counts the frames from here to its caller: no function in between.
        found = list(frames)
        with suppress(Exception):
            found = _tidied(found)
        return extract(kind, iter(found), *args, **options)

    return extract_without_us


def _tidied(found: list[Any]) -> list[Any]:
    """Pairs of a frame and where it stands: a stack is walked outward, a traceback inward."""
    frames = [pair[0] for pair in found]
    if len(frames) > 1 and frames[0].f_back is frames[1]:
        kept = without_us(frames[::-1])
        return [found[len(found) - 1 - at] for at in reversed(kept)]
    return [found[at] for at in without_us(frames)]
