"""What stands in the place of a function of torch's while a cell is watched."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .event_notes import EventNotes
    from .mode_stack import ModeStack


class Watching:
    """In place for as long as `presence` lasts; silent in other threads than the one it began on,
    and once the recorder rests, or an error of ours has switched it off."""

    def __init__(self, recorder: EventNotes, presence: ModeStack) -> None:
        self._recorder = recorder
        self._presence = presence
        self._thread = threading.get_ident()

    def _is_watching(self) -> bool:
        return not self._recorder.is_over and self._is_own_thread()

    def _is_own_thread(self) -> bool:
        return threading.get_ident() == self._thread
