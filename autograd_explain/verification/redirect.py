"""Python's functions for files, made to work on an overlay; in a process of our own alone.

Code written in C that opens a path by itself does not come by here: what it would write is refused
by the system call filter.
"""

from __future__ import annotations

import _io
import builtins
import errno
import gc
import importlib
import io
import os
import posix
import shutil
import stat
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FunctionType
from typing import Any

from .overlay import Beyond, Overlay

_NOTHING = frozenset({"chmod", "chown", "lchown", "utime"})  #: of no effect on what is computed
#: They keep Python's own functions: imports read what is really there.
_KEPT = ("posix", "_io", "importlib._bootstrap_external", "zipimport", __name__)


class Redirection:
    """`refuse` gives what is raised where a write cannot be taken in."""

    def __init__(self, overlay: Overlay, refuse: Callable[[object], BaseException]) -> None:
        self.overlay = overlay
        self._refuse = refuse
        self._thread = threading.local()
        self._null = posix.open(os.devnull, os.O_RDWR)

    @property
    def working(self) -> bool:
        """Whether what this thread does to files now is the overlay's doing."""
        return getattr(self._thread, "working", False)

    def install(self) -> None:
        """Put these functions in the place of Python's, under every name that they have."""
        table = {name: self._through(name) for name in (*_CALLS, *_NOTHING) if hasattr(os, name)}
        table["open"] = self._through("open")
        opened = self._open
        replaced = {id(getattr(posix, name)): new for name, new in table.items()}
        replaced |= {id(_io.open): opened}
        for name, new in table.items():
            setattr(os, name, new)
        builtins.open = io.open = opened
        # By descriptors of folders it would look at what is really there.
        setattr(shutil, "_use_fd_functions", False)  # noqa: B010  # private
        os.fchmod = os.fchown = _unheard
        rebind([*(getattr(posix, name) for name in table), _io.open], replaced)

    def readable(self, path: Any) -> Any:
        """A path for code in C that only reads."""
        if self._is_path(path):
            with self._at_work(path):
                return self.overlay.readable(self.at(path))
        return path

    def _through(self, name: str) -> Callable[..., Any]:
        original = getattr(posix, name)
        action = _nothing if name in _NOTHING else _CALLS[name]

        def call(*args: Any, **kwargs: Any) -> Any:
            path = args[0] if args else kwargs.get("path", kwargs.get("src", "."))
            if self.working or not self._is_path(path):
                return original(*args, **kwargs)
            with self._at_work(path):
                return action(self, *args, **kwargs)

        call.__name__ = call.__qualname__ = name
        return call

    def _open(
        self,
        file: Any,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
        closefd: bool = True,
        opener: Callable[[Any, int], int] | None = None,
    ) -> Any:
        rest = buffering, encoding, errors, newline, closefd
        if file == os.devnull:
            return _io.open(posix.dup(self._null), mode, *rest)
        if self.working or not self._is_path(file):
            return _io.open(file, mode, *rest, opener)
        with self._at_work(file):
            return _io.open(file, mode, *rest, self._opener(opener))

    def _opener(self, given: Callable[[Any, int], int] | None) -> Callable[[Any, int], int]:
        def opener(path: Any, flags: int) -> int:
            if given is None:
                return self.overlay.open(self.at(path), flags)
            self._thread.working = False
            try:
                return given(path, flags)
            finally:
                self._thread.working = True

        return opener

    def _is_path(self, path: Any) -> bool:
        if not isinstance(path, (str, bytes, os.PathLike)):
            return False
        return self.overlay.takes(os.fsdecode(path))

    @contextmanager
    def _at_work(self, path: Any) -> Iterator[None]:
        self._thread.working = True
        try:
            yield
        except Beyond:
            raise self._refuse(path) from None
        except OSError as error:
            if error.filename is not None:
                error.filename = path
            raise
        finally:
            self._thread.working = False

    def at(self, path: Any, dir_fd: int | None = None, follow: bool = True) -> str:
        """The absolute path without links, the last one left where it is not to be followed."""
        base = None if dir_fd is None else posix.readlink(f"/proc/self/fd/{dir_fd}")
        return self.overlay.resolved(os.fsdecode(path), base, follow)


class _FolderEntry:
    """What `os.scandir` gives."""

    def __init__(self, folder: str, name: str) -> None:
        self.name = name
        self.path = os.path.join(folder, name)

    def __fspath__(self) -> str:
        return self.path

    def __repr__(self) -> str:
        return f"<DirEntry {self.name!r}>"

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        return os.stat(self.path, follow_symlinks=follow_symlinks)

    def inode(self) -> int:
        return self.stat(follow_symlinks=False).st_ino

    def is_symlink(self) -> bool:
        return stat.S_ISLNK(self._mode(follow=False))

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return stat.S_ISDIR(self._mode(follow_symlinks))

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        return stat.S_ISREG(self._mode(follow_symlinks))

    def is_junction(self) -> bool:
        return False

    def _mode(self, follow: bool) -> int:
        try:
            return self.stat(follow_symlinks=follow).st_mode
        except FileNotFoundError:
            return 0


class _Folder:
    """The iterator that `os.scandir` gives."""

    def __init__(self, entries: Iterator[_FolderEntry]) -> None:
        self._entries = entries

    def __iter__(self) -> _Folder:
        return self

    def __next__(self) -> _FolderEntry:
        return next(self._entries)

    def __enter__(self) -> _Folder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._entries = iter(())


def _os_open(
    r: Redirection, path: Any, flags: int, mode: int = 0o777, *, dir_fd: Any = None
) -> int:
    follow = not flags & os.O_NOFOLLOW
    return r.overlay.open(r.at(path, dir_fd, follow), flags)


def _mkdir(r: Redirection, path: Any, mode: int = 0o777, *, dir_fd: Any = None) -> None:
    r.overlay.make_folder(r.at(path, dir_fd, follow=False))


def _rmdir(r: Redirection, path: Any, *, dir_fd: Any = None) -> None:
    r.overlay.remove_folder(r.at(path, dir_fd, follow=False))


def _remove(r: Redirection, path: Any, *, dir_fd: Any = None) -> None:
    r.overlay.remove(r.at(path, dir_fd, follow=False))


def _rename(
    r: Redirection, src: Any, dst: Any, *, src_dir_fd: Any = None, dst_dir_fd: Any = None
) -> None:
    old, new = (
        r.at(src, src_dir_fd, follow=False),
        r.at(dst, dst_dir_fd, follow=False),
    )
    r.overlay.rename(old, new)


def _symlink(
    r: Redirection, src: Any, dst: Any, target_is_directory: bool = False, *, dir_fd: Any = None
) -> None:
    r.overlay.link(os.fsdecode(src), r.at(dst, dir_fd, follow=False))


def _link(
    r: Redirection,
    src: Any,
    dst: Any,
    *,
    src_dir_fd: Any = None,
    dst_dir_fd: Any = None,
    follow_symlinks: bool = True,
) -> None:
    old = r.at(src, src_dir_fd, follow=False)
    r.overlay.link_hard(old, r.at(dst, dst_dir_fd, follow=False))


def _stat(
    r: Redirection, path: Any, *, dir_fd: Any = None, follow_symlinks: bool = True
) -> os.stat_result:
    return r.overlay.stat(r.at(path, dir_fd, follow_symlinks))


def _lstat(r: Redirection, path: Any, *, dir_fd: Any = None) -> os.stat_result:
    return r.overlay.stat(r.at(path, dir_fd, follow=False))


def _access(
    r: Redirection,
    path: Any,
    mode: int,
    *,
    dir_fd: Any = None,
    effective_ids: bool = False,
    follow_symlinks: bool = True,
) -> bool:
    return r.overlay.access(r.at(path, dir_fd, follow_symlinks), mode)


def _listdir(r: Redirection, path: Any = ".") -> list[Any]:
    names = r.overlay.names(r.at(path))
    return [os.fsencode(name) for name in names] if isinstance(path, bytes) else names


def _scandir(r: Redirection, path: Any = ".") -> _Folder:
    if isinstance(path, bytes):
        raise Beyond
    names = r.overlay.names(r.at(path))
    return _Folder(iter([_FolderEntry(os.fspath(path), name) for name in names]))


def _readlink(r: Redirection, path: Any, *, dir_fd: Any = None) -> Any:
    found = r.overlay.target(r.at(path, dir_fd, follow=False))
    return os.fsencode(found) if isinstance(path, bytes) else found


def _truncate(r: Redirection, path: Any, length: int) -> None:
    fd = r.overlay.open(r.at(path), os.O_WRONLY)
    try:
        posix.ftruncate(fd, length)
    finally:
        posix.close(fd)


def _chdir(r: Redirection, path: Any) -> None:
    r.overlay.enter(r.at(path))


def _getcwd(r: Redirection) -> str:
    return r.overlay.folder()


def _nothing(r: Redirection, path: Any, *args: Any, dir_fd: Any = None, **kwargs: Any) -> None:
    found = r.at(path, dir_fd)
    if not r.overlay.exists(found):
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), found)


def _unheard(*args: Any, **kwargs: Any) -> None:
    """Modes and owners of files in memory are of no effect."""


_CALLS: Mapping[str, Callable[..., Any]] = {
    "open": _os_open,
    "mkdir": _mkdir,
    "rmdir": _rmdir,
    "remove": _remove,
    "unlink": _remove,
    "rename": _rename,
    "replace": _rename,
    "symlink": _symlink,
    "link": _link,
    "stat": _stat,
    "lstat": _lstat,
    "access": _access,
    "listdir": _listdir,
    "scandir": _scandir,
    "readlink": _readlink,
    "truncate": _truncate,
    "chdir": _chdir,
    "getcwd": _getcwd,
}


def rebind(originals: Sequence[Any], replaced: Mapping[int, Any]) -> None:
    """What holds functions under names of its own (`from os import mkdir`) gets what replaces
    them, by the identity of the original."""
    kept = {id(vars(sys.modules[name])) for name in _KEPT if name in sys.modules}
    # As a rule the only defaults among the holders: then one pass over all objects is enough.
    closer = getattr(tempfile, "_TemporaryFileCloser", type)  # private
    for function in vars(closer).values():
        _rebind_defaults(function, replaced)
    tuples = []
    gc.unfreeze()  # a program that has set its objects aside has their holders among them
    for holder in gc.get_referrers(*originals):
        if type(holder) is dict and id(holder) not in kept:
            for key, value in list(holder.items()):
                if id(value) in replaced:
                    holder[key] = replaced[id(value)]
        elif type(holder) is tuple:
            tuples.append(holder)
    for function in gc.get_referrers(*tuples) if tuples else ():
        _rebind_defaults(function, replaced)
    importlib.invalidate_caches()
    getattr(sys, "_clear_type_cache", lambda: None)()  # classes were among the holders


def _rebind_defaults(function: Any, replaced: Mapping[int, Any]) -> None:
    given = function.__defaults__ if type(function) is FunctionType else None
    if given and any(id(value) in replaced for value in given):
        function.__defaults__ = tuple(replaced.get(id(value), value) for value in given)
