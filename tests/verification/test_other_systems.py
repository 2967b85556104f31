"""Windows and macOS, simulated: the session lacks what these lack, in a process of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import os, select, signal, subprocess, sys
import torch
from IPython.core.interactiveshell import InteractiveShell

torch.set_num_threads(1)
shell = InteractiveShell.instance()
shell.colors = "NoColor"


def refused(*_):
    raise OSError(10038, "only sockets can be waited for")


def kill(process):
    os.kill(process.pid, 9)


if sys.argv[1] == "win32":
    for name in ("fork", "killpg", "set_blocking", "sysconf", "sched_getaffinity", "setsid"):
        delattr(os, name)
    for name in ("SIGKILL", "SIGALRM", "SIGHUP", "SIGCHLD", "pthread_sigmask", "setitimer"):
        delattr(signal, name)
    select.select = refused
    subprocess.Popen.kill = kill
sys.platform = sys.argv[1]
shell.run_line_magic("load_ext", "autograd_explain")
shell.run_line_magic("autograd_check", "on")
start = "import torch\\nw = torch.ones(3, requires_grad=True)\\ny = w.exp()\\n"
for write in ("y.mul_(2)", "y.data.mul_(2)"):
    print("cell")
    shell.run_cell(start + write + "\\ny.sum().backward()", store_history=True)
shell.run_line_magic("autograd_explain", "--debug")
"""


@pytest.mark.timeout(240)
@pytest.mark.one_in(2)
@pytest.mark.parametrize("system", ["win32", "darwin"])
def test_an_error_and_a_silent_fault_are_explained(system: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, system], capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr[-2000:]
    _, error, silent = done.stdout.split("cell\n")
    assert "y.mul_(2)" in error and "✓ verified" in error
    assert "silent_overwrite" in silent and "✓ " in silent
    assert "set aside an internal error" not in done.stdout


def test_a_worker_ends_with_the_pipe_to_it() -> None:
    program = (
        "from autograd_explain.verification.worker import _end_with_parent; _end_with_parent(0)"
    )
    worker = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE)
    assert worker.stdin is not None
    worker.stdin.close()
    assert worker.wait(60) == 1
