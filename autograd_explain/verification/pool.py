"""Replays side by side, each in a process of its own, within time and memory."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from .messages import LONGEST, write_message
from .process import (
    Crash,
    ForkedChild,
    SpawnedChild,
    fork_child,
    memory_of,
    spawn_child,
    wait_for,
)
from .replay import Job, ReplaySession, Result

_POLL = 0.05


@dataclass(frozen=True)
class Limits:
    """`deadline` is a time.monotonic() value."""

    deadline: float
    megabytes: int

    @property
    def seconds_left(self) -> float:
        return self.deadline - time.monotonic()


class Pool(Protocol):
    def run(self, jobs: Mapping[str, Job]) -> Iterator[tuple[str, Result]]:
        """The jobs' results, as they come."""
        ...


class ForkPool:
    """Forks a state once for each job; as many at a time as there are processors for."""

    def __init__(self, session: ReplaySession, limits: Limits) -> None:
        self._session = session
        self._limits = limits
        self._width = max(1, min(4, len(os.sched_getaffinity(0))))

    def run(self, jobs: Mapping[str, Job]) -> Iterator[tuple[str, Result]]:
        waiting = list(jobs.items())
        running: dict[str, tuple[ForkedChild, int]] = {}
        try:
            while waiting or running:
                while waiting and len(running) < self._width:
                    key, job = waiting.pop(0)
                    if self._limits.seconds_left <= 0:
                        yield key, Result(stopped="budget")
                        continue
                    child = self._start(job)
                    running[key] = child, memory_of(child.pid)
                yield from self._collect(running)
        finally:
            for child, _ in running.values():
                self._end(child)

    def _start(self, job: Job) -> ForkedChild:
        def body(reader: int, writer: int) -> None:
            write_message(writer, self._session.replay(job))

        self._session.prepare(job)
        with self._session.sandbox.suspended():
            return fork_child(body, LONGEST)

    def _collect(self, running: dict[str, tuple[ForkedChild, int]]) -> Iterator[tuple[str, Result]]:
        children = [child for child, _ in running.values()]
        wait_for(children, min(_POLL, self._limits.seconds_left))
        for key, (child, before) in list(running.items()):
            message = next(child.messages(), None) or self._stopped(child, before)
            result = Result(stopped="crashed") if isinstance(message, Crash) else message
            if result is not None:
                del running[key]
                self._end(child)
                yield key, result

    def _stopped(self, child: ForkedChild, before: int) -> Result | None:
        if child.closed:
            return Result(stopped="crashed")
        if self._limits.seconds_left <= 0:
            return Result(stopped="budget")
        if memory_of(child.pid) - before > self._limits.megabytes << 20:
            return Result(stopped="memory")
        return None

    def _end(self, child: ForkedChild) -> None:
        with self._session.sandbox.suspended():
            child.end()


class SpawnPool:
    """Where this process cannot be forked: a fresh interpreter for each job."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    def run(self, jobs: Mapping[str, Job]) -> Iterator[tuple[str, Result]]:
        for key, job in jobs.items():
            yield key, self._run(job)

    def _run(self, job: Job) -> Result:
        if self._limits.seconds_left <= 0:
            return Result(stopped="budget")
        try:
            child = spawn_child(("job", job, sys.path), LONGEST)
        except OSError:
            return Result(stopped="crashed")
        try:
            return self._listen(child)
        finally:
            child.end()

    def _listen(self, child: SpawnedChild) -> Result:
        while self._limits.seconds_left > 0:
            child.wait(self._limits.seconds_left)
            for message in child.messages():
                return message if isinstance(message, Result) else Result(stopped="crashed")
            if child.closed:
                return Result(stopped="crashed")
        return Result(stopped="budget")
