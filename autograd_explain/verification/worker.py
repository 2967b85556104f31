"""A fresh process that replays cells, where the session cannot be forked.

Started as `python -m autograd_explain.verification.worker`; reads one request from its standard
input.
"""

from __future__ import annotations

import os
import pickle
import sys
import threading

from .messages import write_message
from .process import keep_private


def main() -> None:
    kind, payload, path = pickle.load(sys.stdin.buffer)
    sys.path[:] = path
    writer = os.dup(1)
    keep_private(writer)
    if sys.platform.startswith("linux"):
        from .isolate import isolate

        isolate((writer,))
    else:
        threading.Thread(target=_end_with_parent, args=(os.dup(0),), daemon=True).start()
        _silence()
    if kind == "plan":
        from .coordinator import coordinate

        for verdict in coordinate(payload, None):
            write_message(writer, verdict)
        write_message(writer, None)
    else:
        from .replay import ReplaySession
        from .sandbox import Sandbox

        sandbox = Sandbox(payload.device)
        sandbox.enter()
        write_message(writer, ReplaySession.fresh(sandbox).replay(payload))
    os._exit(0)


def _end_with_parent(requests: int) -> None:
    """Where the kernel does not do it: the pipe ends with the process that holds its other end."""
    while os.read(requests, 1):
        pass
    os._exit(1)


def _silence() -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)


if __name__ == "__main__":
    main()
