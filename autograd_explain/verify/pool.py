"""Replays side by side, each in a process of its own, within time and memory."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from .messages import LONGEST, decode, write_message
from .process import Child, Crash, fork_child, memory_of, wait_for
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
        running: dict[str, tuple[Child, int]] = {}
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

    def _start(self, job: Job) -> Child:
        def body(reader: int, writer: int) -> None:
            write_message(writer, self._session.replay(job))

        with self._session.sandbox.suspended():
            return fork_child(body, LONGEST)

    def _collect(self, running: dict[str, tuple[Child, int]]) -> Iterator[tuple[str, Result]]:
        children = [child for child, _ in running.values()]
        wait_for(children, min(_POLL, self._limits.seconds_left))
        for key, (child, before) in list(running.items()):
            message = next(child.messages(), None) or self._stopped(child, before)
            result = Result(stopped="crashed") if isinstance(message, Crash) else message
            if result is not None:
                del running[key]
                self._end(child)
                yield key, result

    def _stopped(self, child: Child, before: int) -> Result | None:
        if child.closed:
            return Result(stopped="crashed")
        if self._limits.seconds_left <= 0:
            return Result(stopped="budget")
        if memory_of(child.pid) - before > self._limits.megabytes << 20:
            return Result(stopped="memory")
        return None

    def _end(self, child: Child) -> None:
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
        payload = pickle.dumps(("job", job, sys.path))
        try:
            done = subprocess.run(
                worker_command(), input=payload, stdout=subprocess.PIPE, env=worker_environment(),
                stderr=subprocess.DEVNULL, timeout=self._limits.seconds_left, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return Result(stopped="budget")
        try:
            result = decode(done.stdout[8:])
        except pickle.UnpicklingError:
            return Result(stopped="crashed")
        assert isinstance(result, Result)
        return result


def worker_command() -> list[str]:
    return [sys.executable, "-m", "autograd_explain.verify.worker"]


def worker_environment() -> dict[str, str]:
    """Replays compute on the CPU: the devices belong to the session."""
    hidden = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": "", "MPLBACKEND": "agg"}
    return {**os.environ, **hidden, "PYTHONDONTWRITEBYTECODE": "1"}
