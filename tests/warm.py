"""Python's command line in a process that has loaded torch and us already.

Starting Python with them takes longer than most of the programs that are run.  What a start itself
does is tested by real ones.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import runpy
import signal
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType

from notebook import PATIENCE
from sessions import in_new_process


@dataclass(frozen=True)
class Ended:
    """How a process ended (as `subprocess` has it) and what it printed."""

    status: int
    out: str
    err: str


#: What a program's environment has besides ours.
VARIABLES = {"OMP_NUM_THREADS": "1", "AUTOGRAD_EXPLAIN_LANG": "en"}


def run(
    *arguments: object,
    folder: Path,
    variables: Mapping[str, str] | None = None,
    seconds: float = PATIENCE,
) -> Ended:
    """`python FILE …` or `python -m MODULE …` in a folder.

    `variables`: what the environment has besides `VARIABLES` and the tests' own.
    """
    environment = {**os.environ, **VARIABLES, **(variables or {})}
    given = tuple(map(str, arguments))
    return Ended(*in_new_process(_ended, given, folder, environment, seconds=seconds))


def _ended(
    arguments: tuple[str, ...], folder: Path, variables: Mapping[str, str]
) -> tuple[int, str, str]:
    files = [Path(os.devnull), *(Path(name).resolve() for name in ("out", "err"))]
    pid = os.fork()
    if not pid:
        with contextlib.suppress(BaseException):
            _redirect(files)
            os.chdir(folder)
            os.environ.clear()
            os.environ.update(variables)
            _live(arguments)
        os._exit(70)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return status, *(file.read_text("utf-8", errors="replace") for file in files[1:])


def _redirect(files: list[Path]) -> None:
    for number, file in enumerate(files):
        opened = os.open(file, os.O_RDWR | os.O_CREAT)
        os.dup2(opened, number)
        os.close(opened)
    for name, number in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
        stream = os.fdopen(number, "r" if number == 0 else "w", encoding="utf-8", closefd=False)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _live(arguments: tuple[str, ...]) -> None:
    """From the first statement to the end of the process."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    status: object = 0
    try:
        _program(arguments)
    except SystemExit as end:
        status = end.code
    except BaseException as error:
        seen = error.__traceback__
        while seen is not None and seen.tb_frame.f_code.co_filename == __file__:
            seen = seen.tb_next
        sys.excepthook(type(error), error.with_traceback(seen), seen)
        status = 1
    if isinstance(status, str):
        print(status, file=sys.stderr)
        status = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0 if status is None else int(status))


def _program(arguments: tuple[str, ...]) -> None:
    first, *others = arguments
    if first == "-m":
        sys.argv = others
        sys.path.insert(0, os.getcwd())
        runpy.run_module(others[0], run_name="__main__", alter_sys=True)
        return
    sys.argv = [first, *others]
    sys.path.insert(0, str(Path(first).parent))
    main = sys.modules["__main__"] = ModuleType("__main__")
    main.__dict__.update(__file__=first, __builtins__=__builtins__)
    code: CodeType = compile(Path(first).read_text("utf-8"), first, "exec")
    exec(code, main.__dict__)
