"""Cut a forked copy of the session off from everything that it still shares with the session.

A fork shares open files with their read positions, shared memory, sockets, and, in a kernel, the
objects that talk to the front end.  Until they are replaced the copy could act in the session's
name; afterwards it can only compute.
"""

from __future__ import annotations

import builtins
import fcntl
import os
import re
import signal
import stat
import sys
from collections.abc import Iterable
from typing import Any

_SHARED = re.compile(r"([0-9a-f]+)-([0-9a-f]+) rw.s ")
_MAX_SHARED = 2 << 30
_HARMLESS_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
_PROT_READ_WRITE = 3
_MAP_PRIVATE_FIXED_ANONYMOUS = 0x02 | 0x10 | 0x20


def isolate(keep: Iterable[int]) -> None:
    """To be called once, first thing, in a fork of the session.  `keep` are the pipe ends."""
    os.setsid()  # a group of its own, to be ended as one, and no terminal
    _reset_signals()
    _unshare_memory()
    _unshare_files({*keep})
    _silence_streams()
    _silence_kernel()
    _silence_figures()


class NullStream:
    """A text stream that is always at its end and forgets what is written."""

    encoding = "utf-8"
    errors = "replace"
    closed = False
    name = os.devnull

    @property
    def buffer(self) -> NullStream:
        return self

    def write(self, text: Any) -> int:
        return len(text)

    def writelines(self, lines: Iterable[Any]) -> None:
        """Forget them."""

    def read(self, size: int = -1) -> str:
        return ""

    readline = read

    def flush(self) -> None:
        """Nothing waits."""

    close = flush

    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        return 1

    def __iter__(self) -> Any:
        return iter(())


def _reset_signals() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    asyncio = sys.modules.get("asyncio")
    if asyncio is not None:  # the session's loop does not run here
        asyncio._set_running_loop(None)


def _unshare_memory() -> None:
    """Replace every writable shared mapping by a private copy."""
    import ctypes

    found = []
    with open("/proc/self/maps") as maps:
        for line in maps:
            match = _SHARED.match(line)
            if match and "anon_inode" not in line:
                found.append((int(match[1], 16), int(match[2], 16)))
    if sum(end - start for start, end in found) > _MAX_SHARED:
        raise MemoryError("too much shared memory to copy")
    if not found:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    for start, end in found:
        content = ctypes.string_at(start, end - start)
        at = libc.mmap(start, end - start, _PROT_READ_WRITE, _MAP_PRIVATE_FIXED_ANONYMOUS, -1, 0)
        if at != start:
            raise MemoryError("cannot make shared memory private")
        ctypes.memmove(start, content, end - start)


def _unshare_files(keep: set[int]) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for name in os.listdir("/proc/self/fd"):
        fd = int(name)
        if fd not in keep and fd != null:
            _unshare_file(fd, null)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    if null > 2:
        os.close(null)


def _unshare_file(fd: int, null: int) -> None:
    """A file read by the session gets a position of its own; anything writable is cut off."""
    try:
        mode = os.fstat(fd).st_mode
    except OSError:  # the descriptor that listed /proc/self/fd
        return
    if stat.S_ISDIR(mode):
        return
    if stat.S_ISCHR(mode) and os.readlink(f"/proc/self/fd/{fd}") in _HARMLESS_DEVICES:
        return
    replacement = null
    writes_only = fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_WRONLY
    if stat.S_ISREG(mode) and not writes_only:
        try:
            replacement = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY)
            os.lseek(replacement, os.lseek(fd, 0, os.SEEK_CUR), os.SEEK_SET)
        except OSError:
            replacement = null
    os.dup2(replacement, fd, inheritable=False)
    if replacement != null:
        os.close(replacement)


def _silence_streams() -> None:
    for name in ("stdin", "stdout", "stderr", "__stdin__", "__stdout__", "__stderr__"):
        setattr(sys, name, NullStream())
    sys.displayhook = sys.__displayhook__ = lambda value: None
    builtins.breakpoint = lambda *args, **kws: None


def _silence_kernel() -> None:
    """Objects of the kernel may be held anywhere (a logging handler has the old `sys.stderr`),
    so their classes are silenced: the zmq sockets behind them belong to the session."""
    _silence("ipykernel.iostream", "OutStream", "write", "writelines", "flush", "_flush")
    _silence("ipykernel.iostream", "IOPubThread", "schedule", "send_multipart", "_really_send")
    _silence("ipykernel.iostream", "BackgroundSocket", "send", "send_multipart")
    _silence("jupyter_client.session", "Session", "send", "send_raw")
    _silence("zmq.sugar.socket", "Socket", "send", "send_multipart", "recv", "recv_multipart")
    _silence("IPython.core.displaypub", "DisplayPublisher", "publish", "clear_output")
    _silence("IPython.core.history", "HistoryManager", "writeout_cache", "store_inputs")
    history = getattr(sys.modules.get("IPython.core.history"), "HistoryManager", None)
    for manager in list(getattr(history, "_instances", ())):
        manager.save_thread = None  # it does not run here, and forking would wait for it


def _silence(module: str, name: str, *methods: str) -> None:
    found = getattr(sys.modules.get(module), name, None)
    for method in methods:
        if found is not None and hasattr(found, method):
            setattr(found, method, _nothing)


def _nothing(*args: Any, **kwargs: Any) -> None:
    return None


def _silence_figures() -> None:
    os.environ["MPLBACKEND"] = "agg"
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.show = _nothing  # type: ignore[attr-defined]
        pyplot.pause = _nothing  # type: ignore[attr-defined]
