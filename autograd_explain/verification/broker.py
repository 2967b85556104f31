"""Opens files in memory for processes to which the kernel denies to open anything for writing.

A replay may run any code of the user's, so that no rule about names, numbers or flags that such
code could imitate is to let it write.  A process beside it, in which none of that code runs, is
handed the descriptor of a file, makes sure that it lies in memory, and hands back one to write.
"""

from __future__ import annotations

import fcntl
import os
import posix
import socket
import struct
import threading
from array import array
from contextlib import suppress

from .process import fork_child

_SECONDS = 5.0
_FLAGS = struct.Struct("i")


class Broker:
    """To be made before the system call filter is; serves this process and its forks."""

    def __init__(self) -> None:
        self._socket, theirs = _pair()
        ours = self._socket

        def body(reader: int, writer: int) -> None:
            ours.close()
            _serve(theirs)

        self._child = fork_child(body)
        theirs.close()
        self._lock = threading.Lock()
        self.connect()

    def connect(self) -> None:
        """After a fork: answers of one's own."""
        self._answers, self._answer_here = _pair()
        self._answers.settimeout(_SECONDS)

    def opened(self, fd: int, flags: int) -> int:
        """A new descriptor of a file in memory; raises OSError."""
        with self._lock:
            request = [_FLAGS.pack(flags)]
            socket.send_fds(self._socket, request, [fd, self._answer_here.fileno()])
            _, found, _, _ = socket.recv_fds(self._answers, _FLAGS.size, 1)
        if not found:
            raise PermissionError("no file in memory")
        return found[0]


def in_memory() -> int:
    """The descriptor of a new file.  The seals that it may get are none that a file elsewhere,
    even in a memory file system, may get."""
    return os.memfd_create("replay", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)


def _pair() -> tuple[socket.socket, socket.socket]:
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def _serve(requests: socket.socket) -> None:
    while True:
        data, given, _, _ = socket.recv_fds(requests, _FLAGS.size, 2)
        if not data:
            return
        if len(given) == 2:
            _answer(given[0], given[1], _FLAGS.unpack(data)[0])
        for fd in given:
            posix.close(fd)


def _answer(file: int, answers: int, flags: int) -> None:
    found = _opened(file, flags)
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", found))]
    with suppress(OSError), socket.socket(fileno=posix.dup(answers)) as reply:
        reply.sendmsg([bytes(_FLAGS.size)], rights if found else [])
    for fd in found:
        posix.close(fd)


def _opened(file: int, flags: int) -> list[int]:
    try:
        if fcntl.fcntl(file, fcntl.F_GET_SEALS) == 0:
            return [posix.open(f"/proc/self/fd/{file}", flags | os.O_CLOEXEC)]
    except OSError:
        pass
    return []
