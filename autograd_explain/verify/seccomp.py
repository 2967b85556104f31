"""A system call filter (Linux): what C code may do behind Python's back.

The audit hook of `sandbox` sees what Python does and can tell why it refuses; it does not see
`torch.save`, h5py or OpenCV writing a file.  The kernel does.  Where filters are not available
the audit hook stands alone.
"""

from __future__ import annotations

import errno
import platform
import struct
import sys
from dataclasses import dataclass, field

_ALLOW = 0x7FFF0000
_ERRNO = 0x00050000
_LOAD, _JUMP_EQUAL, _JUMP_BITS, _JUMP_FROM, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_WRITING = 0o3 | 0o100 | 0o1000  # O_WRONLY, O_RDWR, O_CREAT, O_TRUNC
_AF_UNIX = 1
_X32 = 0x40000000
_NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER = 38, 22, 2


@dataclass(frozen=True)
class Calls:
    """The numbers of system calls on one architecture, -1 where it has no such call."""

    architecture: int
    open: int
    openat: int
    openat2: int
    socket: int
    kill: tuple[int, ...]
    denied: dict[str, int] = field(default_factory=dict)


_X86_64 = Calls(
    0xC000003E, 2, 257, 437, 41, (62, 200, 424),
    {
        "creat": 85, "unlink": 87, "unlinkat": 263, "rename": 82, "renameat": 264,
        "renameat2": 316, "mkdir": 83, "mkdirat": 258, "rmdir": 84, "link": 86, "linkat": 265,
        "symlink": 88, "symlinkat": 266, "truncate": 76, "chmod": 90, "fchmod": 91,
        "fchmodat": 268, "fchmodat2": 452, "chown": 92, "fchown": 93, "lchown": 94,
        "fchownat": 260, "mknod": 133, "mknodat": 259, "utime": 132, "utimes": 235,
        "utimensat": 280, "futimesat": 261, "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190,
        "removexattr": 197, "lremovexattr": 198, "fremovexattr": 199, "connect": 42, "bind": 49,
        "listen": 50, "execve": 59, "execveat": 322, "ptrace": 101, "process_vm_writev": 311,
        "pidfd_getfd": 438, "setsid": 112, "setpgid": 109, "io_uring_setup": 425, "mount": 165,
        "umount2": 166, "chroot": 161, "shmget": 29, "semget": 64, "msgget": 68, "mq_open": 240,
        "init_module": 175, "finit_module": 313, "delete_module": 176, "reboot": 169,
        "unshare": 272, "setns": 308, "bpf": 321, "sethostname": 170, "settimeofday": 164,
        "clock_settime": 227, "swapon": 167, "swapoff": 168,
    },
)  # fmt: skip
_AARCH64 = Calls(
    0xC00000B7, -1, 56, 437, 198, (129, 130, 424),
    {
        "unlinkat": 35, "renameat": 38, "renameat2": 276, "mkdirat": 34, "linkat": 37,
        "symlinkat": 36, "truncate": 45, "fchmod": 52, "fchmodat": 53, "fchmodat2": 452,
        "fchown": 55, "fchownat": 54, "mknodat": 33, "utimensat": 88, "setxattr": 5,
        "lsetxattr": 6, "fsetxattr": 7, "removexattr": 14, "lremovexattr": 15,
        "fremovexattr": 16, "connect": 203, "bind": 200, "listen": 201, "execve": 221,
        "execveat": 281, "ptrace": 117, "process_vm_writev": 271, "pidfd_getfd": 438,
        "setsid": 157, "setpgid": 154, "io_uring_setup": 425, "mount": 40, "umount2": 39,
        "chroot": 51, "shmget": 194, "semget": 190, "msgget": 186, "mq_open": 180,
        "init_module": 105, "finit_module": 273, "delete_module": 106, "reboot": 142,
        "unshare": 97, "setns": 268, "bpf": 280, "sethostname": 161, "settimeofday": 170,
        "clock_settime": 112, "swapon": 224, "swapoff": 225,
    },
)  # fmt: skip
_BY_MACHINE = {"x86_64": _X86_64, "aarch64": _AARCH64}


def forbid_effects(signals: bool) -> bool:
    """Deny this process and its children every effect outside; cannot be undone.

    `signals` also forbids sending signals to others.  False where it cannot be had.
    """
    calls = _BY_MACHINE.get(platform.machine())
    if not sys.platform.startswith("linux") or calls is None or sys.maxsize < 2**32:
        return False
    return _install(_program(calls, signals))


def _program(calls: Calls, signals: bool) -> bytes:
    denied = sorted({*calls.denied.values(), *(calls.kill if signals else ())})
    tail = _tail(calls)
    # Jumps count from the next instruction: `tail` starts with three returns (allow, deny,
    # "no such call"), then come the blocks for open, openat and socket.
    head: list[tuple[int, int, int, int]] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_JUMP_EQUAL, 1, 0, calls.architecture),
        (_RETURN, 0, 0, _ALLOW),
        (_LOAD, 0, 0, _NUMBER),
    ]
    tests = [(_JUMP_FROM, "deny", _X32), *((_JUMP_EQUAL, "deny", n) for n in denied)]
    tests += [(_JUMP_EQUAL, "absent", calls.openat2), (_JUMP_EQUAL, "openat", calls.openat)]
    tests += [(_JUMP_EQUAL, "socket", calls.socket)]
    if calls.open >= 0:
        tests.append((_JUMP_EQUAL, "open", calls.open))
    starts = {"allow": 0, "deny": 1, "absent": 2, "open": 3, "openat": 5, "socket": 7}
    for index, (code, target, number) in enumerate(tests):
        head.append((code, len(tests) - index - 1 + starts[target], 0, number))
    return b"".join(struct.pack("HBBI", *instruction) for instruction in head + tail)


def _tail(calls: Calls) -> list[tuple[int, int, int, int]]:
    returns = [
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _ERRNO | errno.EPERM),
        (_RETURN, 0, 0, _ERRNO | errno.ENOSYS),
    ]
    blocks = [
        (_LOAD, 0, 0, _ARGUMENTS + 8 * 1),  # open(path, flags)
        (_JUMP_BITS, 5, 4, _WRITING),
        (_LOAD, 0, 0, _ARGUMENTS + 8 * 2),  # openat(directory, path, flags)
        (_JUMP_BITS, 3, 2, _WRITING),
        (_LOAD, 0, 0, _ARGUMENTS),  # socket(family, …)
        (_JUMP_EQUAL, 0, 1, _AF_UNIX),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _ERRNO | errno.EPERM),
    ]
    return returns + blocks


def _install(program: bytes) -> bool:
    import ctypes

    class Filter(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]

    libc = ctypes.CDLL(None, use_errno=True)
    code = ctypes.create_string_buffer(program, len(program))
    pointer = Filter(len(program) // 8, ctypes.addressof(code))
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0:
        return False
    return bool(libc.prctl(_SET_SECCOMP, _FILTER, ctypes.byref(pointer), 0, 0) == 0)
