"""A system call filter (Linux): what C code may do behind Python's back.

The audit hook of `sandbox` sees what Python does and can tell why it refuses; it does not see
`torch.save`, h5py or OpenCV writing a file.  The kernel does.  Where filters are not available
the audit hook stands alone.
"""

from __future__ import annotations

import errno
import os
import platform
import struct
import sys
from dataclasses import dataclass, field

_ALLOW = 0x7FFF0000
_ERRNO = 0x00050000
_LOAD, _AND, _RETURN = 0x20, 0x54, 0x06
_JUMP_EQUAL, _JUMP_BITS, _JUMP_FROM = 0x15, 0x45, 0x35
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_WRITING = 0o3 | 0o100 | 0o1000  # O_WRONLY, O_RDWR, O_CREAT, O_TRUNC
_SOCK_TYPE, _SOCK_DGRAM = 0xF, 2
_CLONE_THREAD = 0x10000
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_X32 = 0x40000000
_NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER = 38, 22, 2


@dataclass(frozen=True)
class Calls:
    """The numbers of system calls on one architecture, -1 where it has no such call.

    `signals` send one to another process, `processes` start one.  `of_first` and `of_second` act
    on the process that their first or second argument names; 0 is the caller.
    """

    architecture: int
    open: int
    openat: int
    openat2: int
    socketpair: int
    ioctl: int
    tgkill: int
    clone: int
    clone3: int
    signals: tuple[int, ...]
    processes: tuple[int, ...]
    of_first: tuple[int, ...]
    of_second: tuple[int, ...]
    denied: dict[str, int] = field(default_factory=dict)


_X86_64 = Calls(
    0xC000003E, 2, 257, 437, 53, 16, 234, 56, 435,
    (62, 200, 129, 297, 424), (57, 58), (142, 144, 203, 302, 314), (141, 251),
    {
        "creat": 85, "unlink": 87, "unlinkat": 263, "rename": 82, "renameat": 264,
        "renameat2": 316, "mkdir": 83, "mkdirat": 258, "rmdir": 84, "link": 86, "linkat": 265,
        "symlink": 88, "symlinkat": 266, "truncate": 76, "chmod": 90, "fchmod": 91,
        "fchmodat": 268, "fchmodat2": 452, "chown": 92, "fchown": 93, "lchown": 94,
        "fchownat": 260, "mknod": 133, "mknodat": 259, "utime": 132, "utimes": 235,
        "utimensat": 280, "futimesat": 261, "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190,
        "removexattr": 197, "lremovexattr": 198, "fremovexattr": 199, "socket": 41, "connect": 42,
        "bind": 49, "listen": 50, "execve": 59, "execveat": 322, "ptrace": 101,
        "process_vm_writev": 311, "process_madvise": 440, "process_mrelease": 448,
        "pidfd_getfd": 438, "setsid": 112, "setpgid": 109, "io_uring_setup": 425, "mount": 165,
        "umount2": 166, "chroot": 161, "shmget": 29, "shmat": 30, "shmctl": 31, "semget": 64,
        "semop": 65, "semctl": 66, "msgget": 68, "msgsnd": 69, "msgrcv": 70, "msgctl": 71,
        "mq_open": 240, "mq_unlink": 241, "init_module": 175, "finit_module": 313,
        "delete_module": 176, "reboot": 169, "unshare": 272, "setns": 308, "bpf": 321,
        "sethostname": 170, "settimeofday": 164, "clock_settime": 227, "swapon": 167,
        "swapoff": 168, "open_by_handle_at": 304, "add_key": 248, "request_key": 249,
        "keyctl": 250, "migrate_pages": 256, "move_pages": 279, "acct": 163, "quotactl": 179,
        "pivot_root": 155, "kexec_load": 246, "fanotify_init": 300,
    },
)  # fmt: skip
_AARCH64 = Calls(
    0xC00000B7, -1, 56, 437, 199, 29, 131, 220, 435,
    (129, 130, 138, 240, 424), (), (118, 119, 122, 261, 274), (140, 30),
    {
        "unlinkat": 35, "renameat": 38, "renameat2": 276, "mkdirat": 34, "linkat": 37,
        "symlinkat": 36, "truncate": 45, "fchmod": 52, "fchmodat": 53, "fchmodat2": 452,
        "fchown": 55, "fchownat": 54, "mknodat": 33, "utimensat": 88, "setxattr": 5,
        "lsetxattr": 6, "fsetxattr": 7, "removexattr": 14, "lremovexattr": 15,
        "fremovexattr": 16, "socket": 198, "connect": 203, "bind": 200, "listen": 201,
        "execve": 221, "execveat": 281, "ptrace": 117, "process_vm_writev": 271,
        "process_madvise": 440, "process_mrelease": 448, "pidfd_getfd": 438, "setsid": 157,
        "setpgid": 154, "io_uring_setup": 425, "mount": 40, "umount2": 39, "chroot": 51,
        "shmget": 194, "shmctl": 195, "shmat": 196, "semget": 190, "semctl": 191,
        "semtimedop": 192, "semop": 193, "msgget": 186, "msgctl": 187, "msgrcv": 188,
        "msgsnd": 189, "mq_open": 180, "mq_unlink": 181, "init_module": 105, "finit_module": 273,
        "delete_module": 106, "reboot": 142, "unshare": 97, "setns": 268, "bpf": 280,
        "sethostname": 161, "settimeofday": 170, "clock_settime": 112, "swapon": 224,
        "swapoff": 225, "open_by_handle_at": 265, "add_key": 217, "request_key": 218,
        "keyctl": 219, "migrate_pages": 238, "move_pages": 239, "acct": 89, "quotactl": 60,
        "pivot_root": 41, "kexec_load": 104, "fanotify_init": 262,
    },
)  # fmt: skip
_BY_MACHINE = {"x86_64": _X86_64, "aarch64": _AARCH64}


def forbid_effects(*, signals: bool, processes: bool) -> bool:
    """Deny this process and its children every effect outside; cannot be undone.

    `signals` also forbids sending signals to others, `processes` starting any.  False where it
    cannot be had.
    """
    calls = _BY_MACHINE.get(platform.machine())
    if not sys.platform.startswith("linux") or calls is None or sys.maxsize < 2**32:
        return False
    return _install(_program(calls, signals, processes))


_Instruction = tuple[int, int, int, int]
#: A block's name, and its instructions; jumps are written as names of blocks, "" is the next one.
_Step = tuple[int, str, str, int]


def _program(calls: Calls, signals: bool, processes: bool) -> bytes:
    own = os.getpid()
    tests: list[tuple[int, str]] = [(n, "deny") for n in calls.denied.values()]
    tests += [(calls.openat2, "absent"), (calls.open, "open"), (calls.openat, "openat")]
    tests += [(calls.socketpair, "pair"), (calls.ioctl, "terminal")]
    if signals:
        tests += [(n, "deny") for n in calls.signals]
        tests += [(calls.tgkill, "first"), *((n, "first") for n in calls.of_first)]
        tests += [(n, "second") for n in calls.of_second]
    if processes:
        tests += [(n, "deny") for n in calls.processes]
        # glibc does without clone3, whose flags a filter cannot see.
        tests += [(calls.clone3, "absent"), (calls.clone, "clone")]
    steps: dict[str, list[_Step]] = {
        "": [
            (_LOAD, "", "", _ARCHITECTURE), (_JUMP_EQUAL, "", "allow", calls.architecture),
            (_LOAD, "", "", _NUMBER), (_JUMP_FROM, "deny", "", _X32),
            *((_JUMP_EQUAL, block, "", number) for number, block in tests if number >= 0),
            (_RETURN, "", "", _ALLOW),
        ],
        "open": [_argument(1), (_JUMP_BITS, "deny", "allow", _WRITING)],
        "openat": [_argument(2), (_JUMP_BITS, "deny", "allow", _WRITING)],
        "pair": [
            _argument(1), (_AND, "", "", _SOCK_TYPE), (_JUMP_EQUAL, "deny", "allow", _SOCK_DGRAM),
        ],
        "terminal": [
            _argument(1), (_JUMP_EQUAL, "deny", "", _TIOCSTI),
            (_JUMP_EQUAL, "deny", "allow", _TIOCLINUX),
        ],
        "clone": [_argument(0), (_JUMP_BITS, "allow", "deny", _CLONE_THREAD)],
        "first": [_argument(0), *_own_process(own)],
        "second": [_argument(1), *_own_process(own)],
        "allow": [(_RETURN, "", "", _ALLOW)],
        "deny": [(_RETURN, "", "", _ERRNO | errno.EPERM)],
        "absent": [(_RETURN, "", "", _ERRNO | errno.ENOSYS)],
    }  # fmt: skip
    return b"".join(struct.pack("HBBI", *i) for i in _assembled(steps))


def _argument(number: int) -> _Step:
    """Load the low half of an argument."""
    return _LOAD, "", "", _ARGUMENTS + 8 * number


def _own_process(own: int) -> list[_Step]:
    return [(_JUMP_EQUAL, "allow", "", 0), (_JUMP_EQUAL, "allow", "deny", own)]


def _assembled(blocks: dict[str, list[_Step]]) -> list[_Instruction]:
    """Jumps count from the next instruction, go forward only and reach 255 instructions."""
    flat = [step for steps in blocks.values() for step in steps]
    starts: dict[str, int] = {}
    for name in blocks:
        starts[name] = sum(len(blocks[n]) for n in starts)

    def distance(target: str, at: int) -> int:
        return starts[target] - at - 1 if target else 0

    return [
        (code, distance(yes, at), distance(no, at), value)
        for at, (code, yes, no, value) in enumerate(flat)
    ]


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
