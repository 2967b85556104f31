"""The files as one replay has written them: in memory, over those that are there, gone with it.

What is there is only read.  A file that is written is copied into memory first (a memfd, which
nobody else can open), so nothing has to be cleaned up, however the process ends.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import posix
import stat
import sys
import time
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

from .broker import Broker, in_memory

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_LINKS = 40
_COARSE = 5  #: CLOCK_REALTIME_COARSE of Linux
_AT_FDCWD, _NO_FOLLOW, _BTIME = -100, 0x100, 0x800
_ELSEWHERE = ("/proc/", "/dev/", "/sys/")
_FOR_NEW = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW


class Beyond(Exception):
    """A write that the overlay cannot take in."""


@dataclass(frozen=True)
class There:
    """What lies at a real path, if anything does."""

    path: str


@dataclass(frozen=True)
class Written:
    """A file in memory."""

    fd: int


@dataclass(frozen=True)
class Folder:
    """A folder that the replay has made."""


@dataclass(frozen=True)
class Link:
    """A symbolic link that the replay has made."""

    target: str


@dataclass(frozen=True)
class Gone:
    """Nothing, whatever lies there."""


Entry: TypeAlias = There | Written | Folder | Link | Gone


class Overlay:
    """One replay's view of the files.  All paths it is asked for are absolute and resolved.

    `since` is a time of CLOCK_REALTIME_COARSE: what was made later, by the session that is
    replayed, is not there while `hiding`.  `hid` tells whether that was asked for.  `limit` are
    the bytes that all files together may have.
    """

    def __init__(self, since: float | None) -> None:
        self.limit = 1 << 30
        self.hiding = True
        self.hid = False
        self._since = since
        self._entries: dict[str, Entry] = {}
        self._folder: str | None = None
        self._broker = Broker()

    def own(self) -> None:
        """After a fork: files of one's own, those that are open too."""
        self._broker.connect()
        for fd in {e.fd for e in self._entries.values() if isinstance(e, Written)}:
            shared, copy = posix.fstat(fd), self._in_memory(fd)
            for other in map(int, posix.listdir("/proc/self/fd")):
                if other not in (fd, copy) and _is_file(other, shared):
                    self._reopen_as(other, copy)
            posix.dup2(copy, fd, inheritable=False)
            posix.close(copy)

    def takes(self, path: str) -> bool:
        """Whether a path is one of files, not of the system's tables and devices."""
        return not path.startswith(_ELSEWHERE)

    def resolved(self, path: str, base: str | None = None, follow: bool = True) -> str:
        """The absolute path without links; the last one stays where it is not to be followed."""
        parts = _parts(path if path.startswith("/") else f"{base or self.folder()}/{path}")
        at, links = "/", 0
        while parts:
            part = parts.pop()
            here = os.path.dirname(at) if part == ".." else os.path.join(at, part)
            target = self._target(here) if part != ".." and (parts or follow) else None
            if target is None:
                at = here
                continue
            links += 1
            if links > _LINKS:
                raise _error(errno.ELOOP, path)
            at = "/" if target.startswith("/") else at
            parts += _parts(target)
        return at

    def entry(self, path: str) -> Entry:
        found = self._entries.get(path)
        if found is not None:
            return found
        above = path
        while above != "/":
            above = os.path.dirname(above)
            found = self._entries.get(above)
            if isinstance(found, There):
                return self._unless_new(found.path + path[len(above) :])
            if found is not None:
                return Gone()
        return self._unless_new(path)

    def exists(self, path: str) -> bool:
        entry = self.entry(path)
        if isinstance(entry, There):
            return _mode(entry.path) is not None
        return not isinstance(entry, Gone)

    def is_folder(self, path: str) -> bool:
        entry = self.entry(path)
        if isinstance(entry, There):
            return stat.S_ISDIR(_mode(entry.path) or 0)
        return isinstance(entry, Folder)

    def readable(self, path: str) -> str:
        """Where code that knows nothing of this finds the file to read it."""
        entry = self.entry(path)
        if isinstance(entry, Written):
            return f"/proc/self/fd/{entry.fd}"
        if isinstance(entry, There):
            return entry.path
        raise _error(errno.EISDIR if isinstance(entry, Folder) else errno.ENOENT, path)

    def open(self, path: str, flags: int) -> int:
        """A descriptor of a file, as os.open gives it."""
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            return self._in_memory(None)
        entry, there = self.entry(path), self.exists(path)
        if not flags & WRITING:
            if isinstance(entry, Written):
                return self._reopened(entry.fd, flags)
            if isinstance(entry, Folder):
                raise Beyond
            return posix.open(self.readable(path), flags)
        if there and flags & os.O_CREAT and flags & os.O_EXCL:
            raise _error(errno.EEXIST, path)
        if not there and not flags & os.O_CREAT:
            raise _error(errno.ENOENT, path)
        if self.is_folder(path):
            raise _error(errno.EISDIR, path)
        if not isinstance(entry, Written):
            self._check_writable(path)
            old = self.readable(path) if there and not flags & os.O_TRUNC else None
            entry = self._entries[path] = Written(self._in_memory(old))
        self._check_room()
        return self._reopened(entry.fd, flags & ~_FOR_NEW)

    def make_folder(self, path: str) -> None:
        self._check_free(path)
        self._check_writable(path)
        self._entries[path] = Folder()

    def link(self, target: str, path: str) -> None:
        self._check_free(path)
        self._check_writable(path)
        self._entries[path] = Link(target)

    def link_hard(self, old: str, path: str) -> None:
        self._check_there(old)
        self._check_free(path)
        self._check_writable(path)
        self._entries[path] = self.entry(old)

    def remove(self, path: str) -> None:
        self._check_there(path)
        if self.is_folder(path):
            raise _error(errno.EISDIR, path)
        self._check_writable(path)
        self._entries[path] = Gone()

    def remove_folder(self, path: str) -> None:
        if self.names(path):
            raise _error(errno.ENOTEMPTY, path)
        self._check_writable(path)
        self._entries[path] = Gone()

    def rename(self, old: str, new: str) -> None:
        self._check_there(old)
        if old == new:
            return
        if self.exists(new):
            folder = self.is_folder(old)
            if folder != self.is_folder(new):
                raise _error(errno.ENOTDIR if folder else errno.EISDIR, new)
            if folder and self.names(new):
                raise _error(errno.ENOTEMPTY, new)
        self._check_writable(old)
        self._check_writable(new)
        moved = {path: entry for path, entry in self._entries.items() if _below(path, old)}
        whole = self.entry(old)
        self._forget(new)
        self._forget(old)
        self._entries.update({new + path[len(old) :]: entry for path, entry in moved.items()})
        self._entries[new] = whole
        self._entries[old] = Gone()

    def names(self, path: str) -> list[str]:
        """What is in a folder."""
        entry = self.entry(path)
        self._check_there(path)
        if not self.is_folder(path):
            raise _error(errno.ENOTDIR, path)
        below = posix.listdir(entry.path) if isinstance(entry, There) else []
        made = (os.path.basename(p) for p in self._entries if os.path.dirname(p) == path != p)
        found = dict.fromkeys(chain(below, made))
        return [n for n in found if not isinstance(self.entry(os.path.join(path, n)), Gone)]

    def stat(self, path: str) -> os.stat_result:
        entry = self.entry(path)
        if isinstance(entry, There):
            return posix.lstat(entry.path)
        if isinstance(entry, Written):
            return posix.fstat(entry.fd)
        if isinstance(entry, Folder):
            return posix.lstat("/")
        if isinstance(entry, Link):
            size = len(os.fsencode(entry.target))
            owner = posix.getuid(), posix.getgid()
            return os.stat_result((stat.S_IFLNK | 0o777, 0, 0, 1, *owner, size, 0, 0, 0))
        raise _error(errno.ENOENT, path)

    def access(self, path: str, mode: int) -> bool:
        entry = self.entry(path)
        if isinstance(entry, There):
            return posix.access(entry.path, mode)
        return not isinstance(entry, Gone)

    def target(self, path: str) -> str:
        """Where a link leads to."""
        self._check_there(path)
        found = self._target(path)
        if found is None:
            raise _error(errno.EINVAL, path)
        return found

    def folder(self) -> str:
        """The current folder."""
        return posix.getcwd() if self._folder is None else self._folder

    def enter(self, path: str) -> None:
        """Make a folder the current one."""
        entry = self.entry(path)
        self._check_there(path)
        if not self.is_folder(path):
            raise _error(errno.ENOTDIR, path)
        if isinstance(entry, There):
            posix.chdir(entry.path)
        self._folder = path

    def _reopened(self, fd: int, flags: int) -> int:
        if not flags & WRITING:
            return posix.open(f"/proc/self/fd/{fd}", flags)
        try:
            return self._broker.opened(fd, flags)
        except OSError:
            raise Beyond from None

    def _reopen_as(self, other: int, fd: int) -> None:
        """Put a file in memory in the place of another, at the same position."""
        mode = fcntl.fcntl(other, fcntl.F_GETFL) & (os.O_ACCMODE | os.O_APPEND)
        found = self._reopened(fd, mode)
        posix.lseek(found, posix.lseek(other, 0, os.SEEK_CUR), os.SEEK_SET)
        posix.dup2(found, other, inheritable=False)
        posix.close(found)

    def _in_memory(self, content: str | int | None) -> int:
        """A new file with the content of another."""
        if content is None:
            return in_memory()
        name = content if isinstance(content, str) else f"/proc/self/fd/{content}"
        source = posix.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            found = posix.fstat(source)
            if not stat.S_ISREG(found.st_mode) or found.st_size > self.limit:
                raise Beyond
            fd = in_memory()
            while posix.sendfile(fd, source, None, 1 << 30):
                pass
            return fd
        finally:
            posix.close(source)

    def _unless_new(self, path: str) -> Entry:
        if self._since is None or not self.hiding or _born(path) <= self._since:
            return There(path)
        self.hid = True
        return Gone()

    def _target(self, path: str) -> str | None:
        entry = self.entry(path)
        if isinstance(entry, There):
            try:
                return posix.readlink(entry.path)
            except OSError:
                return None
        return entry.target if isinstance(entry, Link) else None

    def _forget(self, path: str) -> None:
        for known in [p for p in self._entries if _below(p, path)]:
            del self._entries[known]

    def _check_there(self, path: str) -> None:
        if not self.exists(path):
            raise _error(errno.ENOENT, path)

    def _check_free(self, path: str) -> None:
        if self.exists(path):
            raise _error(errno.EEXIST, path)

    def _check_writable(self, path: str) -> None:
        """What the system would refuse is refused."""
        above = os.path.dirname(path)
        if not self.is_folder(above):
            raise _error(errno.ENOTDIR if self.exists(above) else errno.ENOENT, path)
        if not self.access(path if self.exists(path) else above, os.W_OK):
            raise _error(errno.EACCES, path)

    def _check_room(self) -> None:
        files = {e.fd for e in self._entries.values() if isinstance(e, Written)}
        if sum(posix.fstat(fd).st_size for fd in files) > self.limit:
            raise Beyond


def now() -> float:
    """The time as file systems note it."""
    return time.clock_gettime(_COARSE)


def _born(path: str) -> float:
    """When a file was made; 0 where that is not known."""
    buffer = ctypes.create_string_buffer(256)
    libc = ctypes.CDLL(None)
    if libc.statx(_AT_FDCWD, os.fsencode(path), _NO_FOLLOW, _BTIME, buffer) != 0:
        return 0.0
    if not int.from_bytes(buffer.raw[:4], sys.byteorder) & _BTIME:
        return 0.0
    seconds = int.from_bytes(buffer.raw[80:88], sys.byteorder, signed=True)
    return seconds + int.from_bytes(buffer.raw[88:92], sys.byteorder) / 1e9


def _parts(path: str) -> list[str]:
    """The parts of a path, the last one first."""
    return [part for part in reversed(path.split("/")) if part not in ("", ".")]


def _below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


def _mode(path: str) -> int | None:
    try:
        return posix.lstat(path).st_mode
    except OSError:
        return None


def _is_file(fd: int, file: os.stat_result) -> bool:
    try:
        found = posix.fstat(fd)
    except OSError:
        return False
    return (found.st_dev, found.st_ino) == (file.st_dev, file.st_ino)


def _error(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)
