"""A replay has no effect outside itself.

What it writes is kept in memory for itself (`overlay`); where that cannot be done, and what it
would send or start, is refused.
"""

from __future__ import annotations

import builtins
import io
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Any

from ..model import Reason
from .seccomp import forbid_effects

if TYPE_CHECKING:
    from .redirect import Redirection

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_FILE = "needs_file"
_NETWORK = "needs_network"
_PROCESS = "needs_subprocess"

#: Audit events that are refused whatever their arguments.
_REFUSED: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink",
            "os.truncate", "os.chmod", "os.chown", "os.chflags", "os.utime", "os.setxattr",
            "os.removexattr", "os.lockf", "syslog.syslog",
        ),
        _FILE,
    ),
    **dict.fromkeys(
        (
            "socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg",
            "socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr",
            "socket.sethostname", "http.client.connect", "urllib.Request", "ftplib.connect",
            "smtplib.connect", "imaplib.open", "poplib.connect", "telnetlib.Telnet.open",
            "webbrowser.open",
        ),
        _NETWORK,
    ),
    **dict.fromkeys(
        (
            "subprocess.Popen", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty",
            "os.system", "os.startfile", "pty.spawn", "os.kill", "os.killpg",
        ),
        _PROCESS,
    ),
}  # fmt: skip


#: C functions that start processes or reach any system call.
_STARTING = frozenset(
    "fork vfork _Fork clone clone3 syscall system popen posix_spawn posix_spawnp daemon".split()
)
_SLACK = 256 << 20  #: what a replay needs besides: caches, stacks of threads


def limit_memory(megabytes: int) -> None:
    """Bound what this process and its children may have more than now (Linux, by the kernel)."""
    if not sys.platform.startswith("linux"):
        return
    import resource

    with open("/proc/self/status") as status:
        used = next((int(s.split()[1]) << 10 for s in status if s.startswith("VmData")), 0)
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = used + (megabytes << 20) + _SLACK
    known = [n for n in (wanted, soft, hard) if n != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min(known), min(known)))


class ForbiddenEffect(BaseException):
    """The program wants an effect outside; not an Exception, so that no `except` swallows it."""


class Sandbox:
    """What is refused and what was.  One a process; entering cannot be undone.

    `device`: the session uses one, which may be hidden from this process.  `since`: what the
    session has written after that time is not there, as in `Overlay`.
    """

    def __init__(self, device: bool, since: float | None = None) -> None:
        self.device = device
        self.reason: Reason | None = None
        self._since = since
        self._files: Redirection | None = None
        self._suspended = 0

    def enter(self) -> None:
        """Refuse effects from here on.  Forks of our own are made inside `suspended`."""
        _patch_python(self)
        _patch_torch(self)
        self._files = _redirected(self, self._since)
        sys.addaudithook(self._audit)
        forbid_effects(signals=False, processes=False)

    def enter_prefix(self, megabytes: int) -> None:
        """Before the session's code runs in a process that starts replays afterwards."""
        limit_memory(megabytes)
        forbid_effects(signals=True, processes=False)

    def enter_replay(self, megabytes: int, hiding: bool = True) -> None:
        """In the process that runs one replay: no signals, no processes, files of its own.

        `hiding` as in `Overlay`.
        """
        if self._files is not None:
            self._files.overlay.hiding = hiding
            self._files.overlay.limit = megabytes << 20
            with self.suspended():
                self._files.overlay.own()
        self._suspended = 0
        limit_memory(megabytes)
        forbid_effects(signals=True, processes=True)

    @property
    def hid(self) -> bool:
        """Whether a file was asked for that the session has made since."""
        return self._files is not None and self._files.overlay.hid

    @contextmanager
    def suspended(self) -> Iterator[None]:
        self._suspended += 1
        try:
            yield
        finally:
            self._suspended -= 1

    def refuse(self, key: str, what: object = "") -> ForbiddenEffect:
        """Note the first refusal and give what is to be raised."""
        if self.reason is None:
            self.reason = Reason(key, {"what": _short(what)} if what else {})
        return ForbiddenEffect(key)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            if _writes(arguments):
                self._deny(_FILE, arguments[0])
        elif event == "socket.__new__":
            if len(arguments) > 1 and arguments[1] not in (_unix_family(), -1):
                self._deny(_NETWORK, "socket")
        elif event == "sqlite3.connect":
            if arguments and arguments[0] != ":memory:":
                self._deny(_FILE, arguments[0])
        elif event == "ctypes.dlsym":
            if len(arguments) > 1 and arguments[1] in _STARTING:
                self._deny(_PROCESS, arguments[1])
        elif event == "ctypes.dlopen":
            if arguments and arguments[0] is not None and not _inside_import():
                self._deny(_PROCESS, arguments[0])
        elif event in _REFUSED:
            self._deny(_REFUSED[event], arguments[0] if arguments else "")

    def _deny(self, key: str, what: object) -> None:
        if self._suspended or (self._files is not None and self._files.working):
            return
        if _inside_import():
            # Libraries write caches while they are imported, and do without where they cannot.
            raise PermissionError(f"a replay writes nothing: {what!r}")
        raise self.refuse(key, what)


def _writes(arguments: tuple[Any, ...]) -> bool:
    path, mode, flags = (*arguments, None, None)[:3]
    if isinstance(path, int) or path == os.devnull:
        return False
    if isinstance(flags, int) and flags & _WRITING:
        return True
    return isinstance(mode, str) and any(letter in mode for letter in "wax+")


def _unix_family() -> int:
    socket = sys.modules.get("socket")
    return int(getattr(socket, "AF_UNIX", -1))


def _inside_import() -> bool:
    frame = sys._getframe(2)
    found: Any = frame
    while found is not None:
        if found.f_code.co_filename.startswith("<frozen importlib"):
            return True
        found = found.f_back
    return False


def _short(what: object) -> str:
    if isinstance(what, bytes):
        what = what.decode(errors="replace")
    if isinstance(what, (list, tuple)):
        what = " ".join(map(str, what))
    text = str(what)
    return text if len(text) <= 80 else text[:79] + "…"


def _patch_python(sandbox: Sandbox) -> None:
    def no_input(*args: Any, **kwargs: Any) -> Any:
        raise sandbox.refuse("needs_input")

    builtins.input = no_input
    getpass = sys.modules.get("getpass")
    if getpass is not None:
        getpass.getpass = no_input  # type: ignore[attr-defined]
    with suppress(ImportError):
        import _posixsubprocess

        # By way of which multiprocessing spawns; no audit event tells.
        _posixsubprocess.fork_exec = _refusing(sandbox, _PROCESS, "multiprocessing")
    sys.dont_write_bytecode = True
    # Asked for its folder, tempfile would look for one by writing to it.
    import tempfile

    tempfile.tempdir = tempfile.tempdir or os.environ.get("TMPDIR") or "/tmp"


def _refusing(sandbox: Sandbox, key: str, what: str) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise sandbox.refuse(key, what)

    return refuse


def _redirected(sandbox: Sandbox, since: float | None) -> Redirection | None:
    """What is written goes into memory, where that can be had."""
    if sys.platform.startswith("linux") and hasattr(os, "memfd_create"):
        from .native import install
        from .overlay import Overlay
        from .redirect import Redirection

        with suppress(OSError):
            found = Redirection(Overlay(since), partial(sandbox.refuse, _FILE))
            found.install()
            install(found)
            return found
    null = os.open(os.devnull, os.O_RDWR)
    builtins.open = io.open = _open_with_null(builtins.open, null)
    return None


def _open_with_null(original: Callable[..., Any], null: int) -> Any:
    """The system call filter knows flags, not names: hand out the null device opened before."""

    def open(file: Any, *args: Any, **kwargs: Any) -> Any:
        return original(os.dup(null) if file == os.devnull else file, *args, **kwargs)

    return open


def _patch_torch(sandbox: Sandbox) -> None:
    import torch

    there = sandbox.device or _has_device(torch)

    def no_device(*args: Any, **kwargs: Any) -> Any:
        raise sandbox.refuse("cuda")

    def answering(answer: Any) -> Callable[..., Any]:
        def ask(*args: Any, **kwargs: Any) -> Any:
            # torch asks at every step of an optimizer; a program that asks computes on the answer.
            if there and not _is_torch(sys._getframe(1)):
                no_device()
            return answer

        return ask

    for name in ("cuda", "xpu", "mtia"):
        device = getattr(torch, name, None)
        if device is not None and hasattr(device, "_lazy_init"):
            device._lazy_init = no_device
            device.is_available = answering(False)
            device.device_count = answering(0)
    torch.set_num_threads(1)
    # More threads than the one that was forked would wait for ever (OpenMP).
    torch.set_num_threads = lambda nthreads: None
    torch.set_num_interop_threads = lambda nthreads: None
    _save_in_python(torch)
    _refuse_process_groups(sandbox)
    _load_in_process()


def _has_device(torch: Any) -> bool:
    """Whether there is a GPU, asked of its driver: CUDA itself is not to be initialised."""
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"  # documented at torch.cuda.is_available
    try:
        return bool(torch.cuda.is_available())
    finally:
        del os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"]


def _is_torch(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).partition(".")[0] == "torch"


def _save_in_python(torch: Any) -> None:
    """torch.save writes its archive in C++, which no audit event tells and nothing redirects."""
    original = torch._C.PyTorchFileWriter

    def writer(target: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(target, (str, bytes, os.PathLike)):
            target = open(target, "wb", buffering=0)  # noqa: SIM115
        return original(target, *args, **kwargs)

    torch._C.PyTorchFileWriter = writer


def _refuse_process_groups(sandbox: Sandbox) -> None:
    """Their sockets are opened in C++, without an audit event, and the threads of a group do not
    outlive a fork: what asks them, or joins them, would wait until the time is over."""
    import torch.distributed as dist

    if not dist.is_available():
        return

    def refuse(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if name == "init_process_group":
                local = (*args, kwargs.get("backend"))[0] == "fake"
            else:
                local = not dist.is_initialized() or dist.get_backend() == "fake"
            if local:
                return original(*args, **kwargs)
            raise sandbox.refuse(_NETWORK, name)

        return call

    from torch.nn.parallel import DistributedDataParallel

    for name in _COMMUNICATING:
        for module in (dist, dist.distributed_c10d):
            if hasattr(module, name):
                setattr(module, name, refuse(name, getattr(module, name)))
    for name in ("__init__", "forward"):
        original = getattr(DistributedDataParallel, name)
        setattr(DistributedDataParallel, name, refuse("DistributedDataParallel", original))


#: Functions of torch.distributed that speak to other processes or end the threads that do.
_COMMUNICATING = tuple(
    "init_process_group destroy_process_group new_group split_group barrier monitored_barrier "
    "all_reduce all_reduce_coalesced reduce broadcast broadcast_object_list all_gather "
    "all_gather_into_tensor all_gather_coalesced all_gather_object gather gather_object scatter "
    "scatter_object_list reduce_scatter reduce_scatter_tensor all_to_all all_to_all_single send "
    "recv isend irecv batch_isend_irecv send_object_list recv_object_list".split()
)


def _load_in_process() -> None:
    """A DataLoader with workers would fork; here it loads by itself."""
    from torch.utils.data import DataLoader, dataloader

    def iterator(self: Any) -> Any:
        self.num_workers, self.timeout, self.prefetch_factor = 0, 0, None
        object.__setattr__(self, "persistent_workers", False)
        return dataloader._SingleProcessDataLoaderIter(self)

    DataLoader._get_iterator = iterator  # type: ignore[method-assign]
