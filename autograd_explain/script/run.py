"""`python -m autograd_explain run`: a program as it runs without us, and the report after it."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from ..incident import Incident
from ..intercept import guard
from ..intercept.traceback import tidy
from ..settings import AutogradExplain, Options, rank_of
from .hooks import explaining_threads
from .rank_record import RankRecord
from .target import Target
from .watch import Watch, show

if TYPE_CHECKING:
    from ..render.explanation import Explanation


def run(
    target: Target,
    arguments: Sequence[str],
    explain: Callable[..., Explanation | None],
    recognise: Callable[[Incident, Options], bool],
    settings: AutogradExplain,
    *,
    check: bool = False,
    report: Path | None = None,
    write: Callable[[Sequence[Explanation]], str] | None = None,
) -> int:
    """Run a program as `__main__`; its exit code.

    What it raises is shown as Python shows it, and explained below; with `check` the program is
    recorded, its rewrites are tried, and faults without an error are told at its end.  SystemExit
    goes through.  `report` is where the last explanation is written as JSON; each process of a
    distributed job leaves a record of its own instead, there and beside torch elastic's error file.
    `write` puts the reports into the words of another program, for standard error and `report`.
    """
    main = target.as_main(arguments)
    if check:
        # The recorder has to be there before the first tensor is.
        import torch  # noqa: F401
    program = target.program(main)
    tell = show if write is None else _tell_later
    record = RankRecord(program, report)
    untried = "verify_off_outside" if rank_of() is None else "verify_off_rank"
    watch = Watch(program, explain, recognise, settings, tell=tell, untried=untried)
    failed = False
    try:
        with watch.warnings(), explaining_threads(watch.failed):
            try:
                with watch.recording() if check else nullcontext():
                    target.execute(main)
            except SystemExit:
                raise
            except BaseException as error:
                failed = True
                record.failed(error)
                _show(error)
                if isinstance(error, KeyboardInterrupt):
                    _end_as_interrupted()
                watch.failed(error)
        return int(failed)
    finally:
        if not failed:
            watch.ended()
        watch.close()
        record.explained(watch.found)
        if watch.found:
            with guard.guarded("report"):
                _hand_over(watch.found, None if record.files else report, write)


def _tell_later(_: Explanation) -> None:
    """All of them are written together, at the end."""


def _hand_over(
    found: Sequence[Explanation],
    report: Path | None,
    write: Callable[[Sequence[Explanation]], str] | None,
) -> None:
    """To other programs: what is read from standard error, and the file."""
    if write is not None:
        print(write(found), file=sys.stderr)
    if report is not None:
        text = json.dumps(found[-1].to_dict(), indent=1) if write is None else write(found)
        report.write_text(f"{text}\n", "utf-8")


def _show(error: BaseException) -> None:
    """As Python would: through the program's own hook, from the program's first frame on."""
    with guard.guarded("traceback"):
        traceback = error.__traceback__
        while traceback is not None and _is_ours(traceback):
            traceback = traceback.tb_next
        error.__traceback__ = traceback
        tidy(error)
    sys.excepthook(type(error), error, error.__traceback__)


def _is_ours(traceback: TracebackType) -> bool:
    return str(traceback.tb_frame.f_globals.get("__name__")).startswith(f"{__package__}.")


def _end_as_interrupted() -> None:
    """The shell is to see that a signal ended the program, as without us."""
    if threading.current_thread() is threading.main_thread() and os.name == "posix":
        sys.stdout.flush()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
