"""Small programs that make torch say each of its common and occasional messages on a CPU.

`@raises("id", …)` and `@warns("id", …)` register a function; the captures that the real message
must give are written beside it.  `NOT_HERE` says honestly which rows no CPU-only program of
torch 2.13 can raise, and why.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Run = Callable[[], object]


@dataclass(frozen=True)
class Program:
    """A function that ends in the message `id`, as an "error", a "warning" or on "stderr"."""

    id: str
    kind: str
    captures: dict[str, str]
    run: Run


PROGRAMS: list[Program] = []


def _register(id: str, kind: str, captures: dict[str, str]) -> Callable[[Run], Run]:
    def register(run: Run) -> Run:
        PROGRAMS.append(Program(id, kind, captures, run))
        return run

    return register


def raises(id: str, **captures: str) -> Callable[[Run], Run]:
    return _register(id, "error", captures)


def warns(id: str, **captures: str) -> Callable[[Run], Run]:
    return _register(id, "warning", captures)


def prints(id: str, **captures: str) -> Callable[[Run], Run]:
    return _register(id, "stderr", captures)


#: Common and occasional rows that a CPU-only build of torch 2.13 cannot raise.
NOT_HERE: dict[str, str] = {}

#: Rows that need two processes; `two_ranks.py` raises them.
TWO_RANKS = ("ddp-shape-mismatch-ranks", "ddp-shape-mismatch-sizes")

from . import (  # noqa: E402  each registers its programs
    arguments,
    checkpoints,
    copies,
    custom,
    functorch,
    graph,
    hooks,
    inplace,
    optimizers,
    parallel,
)

__all__ = [
    "NOT_HERE",
    "PROGRAMS",
    "TWO_RANKS",
    "Program",
    "arguments",
    "checkpoints",
    "copies",
    "custom",
    "functorch",
    "graph",
    "hooks",
    "inplace",
    "optimizers",
    "parallel",
]
