"""Child processes: made by fork, spoken to through pipes, never left behind."""

from __future__ import annotations

import os
import pickle
import queue
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
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
    return sys.platform.startswith("linux") and hasattr(os, "fork") and not uses_device()


def uses_device() -> bool:
    """Whether a GPU, or the like, has been initialised here."""
    torch = sys.modules.get("torch")
    devices = (getattr(torch, name, None) for name in ("cuda", "xpu", "mtia"))
    return any(getattr(device, "is_initialized", bool)() for device in devices if device)


@dataclass(frozen=True)
class Crash:
    """The last message of a child that failed; `trace` is for debugging."""

    what: str
    trace: str


#: Our ends of the pipes to children and, in a child, its own: no fork inherits them.
_pipes: set[int] = set()


class Child:
    """A running child and what it says."""

    def __init__(self, pid: int, longest: int) -> None:
        self.pid = pid
        self.closed = False
        self._buffer = bytearray()
        self._longest = longest
        self._broken = ""

    def send(self, message: object) -> bool:
        """Send to the child; False where it is gone, or takes no more than what it began with."""
        return False

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

    def wait(self, seconds: float) -> None:
        """Until it has something to say or the time is over."""
        raise NotImplementedError

    def end(self, group: bool = False) -> None:
        """Kill it (with its whole process group) and wait until it is gone."""
        raise NotImplementedError

    def _fill(self) -> None:
        """Take what has arrived, without waiting for more."""
        raise NotImplementedError

    def _take(self, data: bytes) -> bool:
        """Whether there may be more: no data is the end, and so is far too much."""
        self._buffer += data
        return bool(data) and len(self._buffer) <= 2 * self._longest


class ForkedChild(Child):
    """A fork of this process, with a pipe to it and one from it."""

    def __init__(self, pid: int, reader: int, writer: int, longest: int) -> None:
        super().__init__(pid, longest)
        self.status: int | None = None
        self._reader: int | None = reader
        self._writer: int | None = writer
        _pipes.update((reader, writer))
        os.set_blocking(reader, False)

    def fileno(self) -> int:
        assert self._reader is not None
        return self._reader

    def send(self, message: object) -> bool:
        if self._writer is None:
            return False
        try:
            write_message(self._writer, message)
        except OSError:
            return False
        return True

    def wait(self, seconds: float) -> None:
        wait_for([self], seconds)

    def _fill(self) -> None:
        while self._reader is not None:
            try:
                data = os.read(self._reader, _CHUNK)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not self._take(data):
                _close(self._reader)
                self._reader = None
                self.closed = True

    def end(self, group: bool = False) -> None:
        for fd in (self._writer, self._reader):
            if fd is not None:
                _close(fd)
        self._writer = self._reader = None
        self.closed = True
        if self.status is None:
            self.status = _reap(self.pid, _kill(self.pid, group))


class SpawnedChild(Child):
    """A fresh interpreter.  It ends when the pipe to it does.

    A thread reads what it says: not every system can wait for a pipe (select, on Windows, takes
    sockets only).
    """

    def __init__(self, process: subprocess.Popen[bytes], longest: int) -> None:
        super().__init__(process.pid, longest)
        self._process = process
        self._arrived: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._pump = threading.Thread(target=self._read, daemon=True)
        self._pump.start()

    def wait(self, seconds: float) -> None:
        try:
            data = self._arrived.get(timeout=max(0.0, seconds))
        except queue.Empty:
            return
        self.closed = not self._take(data)

    def _fill(self) -> None:
        while not self.closed and not self._arrived.empty():
            self.closed = not self._take(self._arrived.get())

    def _read(self) -> None:
        assert self._process.stdout is not None
        data = b"?"
        while data:
            try:
                data = os.read(self._process.stdout.fileno(), _CHUNK)
            except OSError:
                data = b""
            self._arrived.put(data)

    def end(self, group: bool = False) -> None:
        self.closed = True
        if group and hasattr(os, "killpg"):
            _kill(self.pid, group)
        self._process.kill()
        self._process.wait()
        self._pump.join()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()


def spawn_child(request: object, longest: int = _VERDICTS) -> SpawnedChild:
    """Have a fresh interpreter work on a request (`worker.py`); raises OSError."""
    # Replays compute on the CPU: the devices belong to the session.
    hidden = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": "", "MPLBACKEND": "agg"}
    process = subprocess.Popen(
        [sys.executable, "-m", "autograd_explain.verification.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **hidden, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    child = SpawnedChild(process, longest)
    assert process.stdin is not None
    try:
        pickle.dump(request, process.stdin)
        process.stdin.flush()
    except OSError:
        child.end()
        raise
    return child


def fork_child(body: Callable[[int, int], None], longest: int = _VERDICTS) -> ForkedChild:
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
            return ForkedChild(pid, up_read, down_write, longest)
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


def wait_for(children: Sequence[ForkedChild], seconds: float) -> None:
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
