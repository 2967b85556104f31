"""What one process of a distributed job leaves behind: a small file, written before the report.

A launcher ends the other processes as soon as one has failed, without a warning.  So the error
and the user's lines are on disk first, and the report takes their place when it is made.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..incident import chain_of, frames_of
from ..intercept import guard
from ..isolation.type_checks import message_of, traceback_of
from ..program import Program
from ..settings import rank_of

if TYPE_CHECKING:
    from ..render.explanation import Explanation

NAME = "autograd_explain.json"
SCHEMA = 1
_LONGEST = 20_000  #: characters of a message


class RankRecord:
    """The file, or files, of this process; none where it is no process of a distributed job."""

    def __init__(
        self,
        program: Program,
        report: Path | None,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._program = program
        self._environment = environment
        self._error: dict[str, object] | None = None
        self.files = tuple(_files(report, environment))

    def failed(self, error: BaseException) -> None:
        """Note what was raised and at which of the user's lines, before anything slow."""
        if self.files:
            with guard.guarded("report"):
                self._error = self._raised(error)
                self._write(())

    def explained(self, found: Sequence[Explanation]) -> None:
        """Add the reports."""
        if self.files and (found or self._error is not None):
            with guard.guarded("report"):
                self._write(found)

    def _write(self, found: Sequence[Explanation]) -> None:
        record = {
            "schema": SCHEMA,
            **_process(self._environment),
            "error": self._error,
            "reports": [explanation.to_dict() for explanation in found],
            "texts": [explanation.to_text() for explanation in found],
        }
        text = json.dumps(record, indent=1) + "\n"
        for file in self.files:
            with guard.guarded("report"):
                # Whoever reads it while the process is ended finds the old one or the new one.
                file.parent.mkdir(parents=True, exist_ok=True)
                made = file.with_name(f".{file.name}.{os.getpid()}")
                made.write_text(text, "utf-8")
                os.replace(made, file)

    def _raised(self, error: BaseException) -> dict[str, object]:
        first = chain_of(error)[0]
        frames = frames_of(traceback_of(first))
        program = self._program.at(frame.code for frame in frames)
        places = (program.place_of(frame.code, frame.line) for frame in frames)
        return {
            "type": type(first).__name__,
            "message": message_of(first)[:_LONGEST],
            "places": [place.to_dict() for place in places if place is not None],
        }


def _files(report: Path | None, environment: Mapping[str, str]) -> Sequence[Path]:
    """Beside torch elastic's own error file, and where the user wants the report."""
    rank = rank_of(environment)
    if rank is None:
        return ()
    beside = environment.get("TORCHELASTIC_ERROR_FILE")
    found = [Path(beside).with_name(NAME)] if beside else []
    if report is not None:
        found.append(report.with_name(f"{report.stem}.rank{rank}{report.suffix}"))
    return found


def _process(environment: Mapping[str, str]) -> dict[str, Any]:
    numbers = {
        "rank": "RANK",
        "local_rank": "LOCAL_RANK",
        "world_size": "WORLD_SIZE",
        "attempt": "TORCHELASTIC_RESTART_COUNT",
    }
    found = {name: environment.get(variable, "") for name, variable in numbers.items()}
    return {
        **{name: int(value) if value.isdigit() else None for name, value in found.items()},
        "host": socket.gethostname(),
        "pid": os.getpid(),
    }
