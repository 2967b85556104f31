"""When enough has been seen of a loop.

A loop by hand pays for each of its small operations, for as long as it runs: a function mode in
Python costs a microsecond a call, whatever it notes.  A program that has run the same lines
hundreds of times has told what can be told of them, so the recorder rests from there on until the
cell ends.  (A program outside a notebook is watched as a whole, and has other loops behind this
one.)  It does not where that is a small share of what the program does itself: then nothing is
gained for what is lost.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from time import thread_time

#: As many backwards without a line that was not seen before.
BACKWARDS = 200
#: As many seconds of the thread's CPU time, so that a loop pays no more than about as much.
SECONDS = 1.0
#: As many events of the log in each of these seconds: where there are fewer, watching costs a few
#: per cent.
EVENTS = 5_000
EACH = 20  #: asking for the CPU time is a system call


@dataclass
class Rest:
    """Counts the backwards since the program last did something new."""

    _sites: int = 0
    _backwards: int = 0
    _clock: int = 0
    _began: float = field(default_factory=thread_time)

    def is_due(self, sites: int, clock: int) -> bool:
        """Asked at each backward, with the number of sites seen so far and the log's clock."""
        if sites != self._sites:
            self._sites, self._clock = sites, clock
            self._backwards, self._began = 0, thread_time()
            return False
        self._backwards += 1
        if self._backwards < BACKWARDS or self._backwards % EACH:
            return False
        spent = thread_time() - self._began
        return spent >= SECONDS and clock - self._clock >= spent * EVENTS
