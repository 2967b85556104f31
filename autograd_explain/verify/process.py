"""Child processes: made by fork, spoken to through pipes, never left behind."""

from __future__ import annotations

import os
import pickle
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from ..isolation.silence import silenced
from .messages import decode, next_message, write_message

_PR_SET_PDEATHSIG = 1
_CHUNK = 1 << 20
_VERDICTS = 64 << 20  #: bytes of what a child has to say, unless it sends gradients


def can_fork() -> bool:
    """Whether a fork of this process can run torch: Linux, and no device initialised.

    macOS' frameworks abort in a forked child; a CUDA context does not survive a fork.
    """
    if not sys.platform.startswith("linux") or not hasattr(os, "fork"):
        return False
    torch = sys.modules.get("torch")
    for name in ("cuda", "xpu", "mtia"):
        device = getattr(torch, name, None)
        if device is not None and getattr(device, "is_initialized", bool)():
            return False
    return True


@dataclass(frozen=True)
class Crash:
    """The last message of a child that failed; `trace` is for debugging."""

    what: str
    trace: str


#: Our ends of the pipes to children and, in a child, its own: no fork inherits them.
_pipes: set[int] = set()


class Child:
    """A running child and the end of the pipe on which it reports."""

    def __init__(
        self, pid: int, reader: int, writer: int | None = None, longest: int = _VERDICTS
    ) -> None:
        self.pid = pid
        self.status: int | None = None
        self._reader: int | None = reader
        self._writer = writer
        self._buffer = bytearray()
        self._longest = longest
        self._broken = ""
        _pipes.update({reader} if writer is None else {reader, writer})
        os.set_blocking(reader, False)

    def fileno(self) -> int:
        assert self._reader is not None
        return self._reader

    def send(self, message: object) -> bool:
        """Send to the child; False where it is gone."""
        if self._writer is None:
            return False
        try:
            write_message(self._writer, message)
        except OSError:
            return False
        return True

    def messages(self) -> Iterator[Any]:
        """What has arrived.  Ends for now, or for good (then `closed`)."""
        self._fill()
        while not self._broken:
            try:
                data = next_message(self._buffer, self._longest)
                if data is None:
                    return
                message = decode(data)
            except pickle.UnpicklingError as error:
                self._broken = f"not a message of ours: {error}"
                message = Crash(self._broken, "")
            yield message

    @property
    def closed(self) -> bool:
        return self._reader is None

    def wait(self, seconds: float) -> None:
        """Until it has something to say or the time is over."""
        wait_for([self], seconds)

    def _fill(self) -> None:
        while self._reader is not None:
            try:
                data = os.read(self._reader, _CHUNK)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data or len(self._buffer) > 2 * self._longest:
                _close(self._reader)
                self._reader = None
                return
            self._buffer += data

    def end(self, group: bool = False) -> None:
        """Kill it (with its whole process group) and wait until it is gone."""
        for fd in (self._writer, self._reader):
            if fd is not None:
                _close(fd)
        self._writer = self._reader = None
        if self.status is None:
            self.status = _reap(self.pid, _kill(self.pid, group))


def fork_child(body: Callable[[int, int], None], longest: int = _VERDICTS) -> Child:
    """Run `body(reader, writer)` in a fork, which then exits without any clean-up.

    `reader` receives what `Child.send` sends, `writer` reports.
    """
    down_read, down_write = os.pipe()
    up_read, up_write = os.pipe()
    parent = os.getpid()
    state = _random_state()
    with _no_interrupts():
        pid = _fork()
        if pid:
            os.close(down_read)
            os.close(up_write)
            return Child(pid, up_read, down_write, longest)
        status = 1
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            die_with_parent(parent)
            for fd in (*_pipes, down_write, up_read):
                os.close(fd)
            _pipes.clear()
            _pipes.update((down_read, up_write))
            _set_random_state(state)
            body(down_read, up_write)
            status = 0
        except BaseException as error:
            _report(up_write, error)
        finally:
            os._exit(status)


def wait_for(children: list[Child], seconds: float) -> None:
    """Until one of them has something to say or the time is over."""
    readers = [c for c in children if not c.closed]
    if readers:
        select.select(readers, [], [], max(0.0, seconds))
    elif seconds > 0:
        time.sleep(min(seconds, 0.05))


def keep_private(fd: int) -> None:
    """A pipe end that forks of this process shall not have."""
    _pipes.add(fd)


def die_with_parent(parent: int) -> None:
    """Ask the kernel to kill this process when its parent ends (Linux)."""
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def memory_of(pid: int) -> int:
    """Resident bytes of a process, 0 where unknown."""
    try:
        with open(f"/proc/{pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return 0


def _fork() -> int:
    # Python 3.12 warns of forks beside other threads; the child uses none of theirs.
    with silenced():
        return os.fork()


def _close(fd: int) -> None:
    _pipes.discard(fd)
    os.close(fd)


def _kill(pid: int, group: bool) -> bool:
    """False where the kernel forbids it: then the group ends as one, by the hand of the session."""
    allowed = True
    for kill in (os.killpg, os.kill) if group else (os.kill,):
        try:
            kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
        except PermissionError:
            allowed = False
    return allowed


def _reap(pid: int, killed: bool) -> int:
    try:
        return os.waitpid(pid, 0 if killed else os.WNOHANG)[1]
    except ChildProcessError:  # someone ignores SIGCHLD, or has waited for every child
        return 0


@contextmanager
def _no_interrupts() -> Iterator[None]:
    """Ctrl-C between the fork and the note of its process id would lose the child."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _random_state() -> object:
    random = sys.modules.get("random")
    return None if random is None else random.getstate()


def _set_random_state(state: object) -> None:
    """`random` seeds itself anew in every fork; a replay must draw what the session would."""
    if state is not None:
        sys.modules["random"].setstate(state)


def _report(writer: int, error: BaseException) -> None:
    """A failure of ours in the child, told to the parent."""
    import traceback

    with suppress(OSError):
        write_message(writer, Crash(f"{type(error).__name__}: {error}", traceback.format_exc()))
