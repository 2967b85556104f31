"""Every common and occasional message that a CPU can raise: raised, recognised, captured."""

from __future__ import annotations

import re
import subprocess
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from programs import NOT_HERE, PROGRAMS, TWO_RANKS, Program

from autograd_explain.match import Match, find_messages, match_message, rows

RELEASE = tuple(map(int, torch.__version__.split(".")[:2]))
EXPECTED = {row["id"] for row in rows().values() if row["likelihood"] != "rare"}


def test_every_common_and_occasional_row_has_a_program_or_a_reason() -> None:
    written = {program.id for program in PROGRAMS} | set(TWO_RANKS)
    assert written | set(NOT_HERE) >= EXPECTED, sorted(EXPECTED - written - set(NOT_HERE))
    assert not written & set(NOT_HERE)


@pytest.mark.parametrize(
    "program", PROGRAMS, ids=lambda program: f"{program.id}-{program.run.__name__}"
)
def test_program(program: Program, capfd: pytest.CaptureFixture[str]) -> None:
    match = OBSERVE[program.kind](program, capfd)
    assert match is not None
    assert program.id in (match.pattern, *match.siblings)
    assert not match.torch or last_release(match.torch) >= RELEASE
    told = [name for name in program.captures if name in match.captures or not match.torch]
    found = {name: node_name(match.captures.get(name)) for name in told}
    assert found == {name: node_name(program.captures[name]) for name in told}


def last_release(wording: str) -> tuple[int, ...]:
    """The last release with a wording that is told as "1.1-2.10" or "before 2.13"."""
    major, minor = map(int, wording.removeprefix("before ").split("-")[-1].split("."))
    return (major, minor - wording.startswith("before "))


def node_name(captured: str | None) -> str | None:
    """Before 2.13, messages have the whole name of a node: SigmoidBackward0."""
    if captured is None or RELEASE >= (2, 13):
        return captured
    return re.sub(r"Backward\d*$", "", captured)


def test_two_processes(tmp_path: Path) -> None:
    script = str(Path(__file__).parent / "programs" / "two_ranks.py")
    command = (sys.executable, script)
    ranks = [
        subprocess.Popen((*command, str(rank), str(tmp_path / "store")), stdout=subprocess.PIPE)
        for rank in range(2)
    ]
    try:
        said = b"".join(rank.communicate(timeout=60)[0] for rank in ranks).decode()
    finally:
        for process in ranks:
            process.kill()
            process.wait()
    found = {
        match.pattern: match.captures for match in map(match_message, said.splitlines()) if match
    }
    assert set(found) == set(TWO_RANKS)
    assert found["ddp-shape-mismatch-sizes"]["shape"] == "[3, 2]"
    assert found["ddp-shape-mismatch-ranks"]["count"] in ("2", "4")


def error(program: Program, capfd: pytest.CaptureFixture[str]) -> Match | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(Exception) as caught:
            program.run()
    frame = next(f for f in reversed(traceback.extract_tb(caught.tb)) if "programs" in f.filename)
    running = frame.name if frame.name == "backward" else ""
    return match_message(str(caught.value), source=frame.line or "", running=running)


@contextmanager
def warning_always() -> Iterator[None]:
    """Some things are said once a process, and another test may be first."""
    torch.set_warn_always(True)
    try:
        yield
    finally:
        torch.set_warn_always(False)


def warning(program: Program, capfd: pytest.CaptureFixture[str]) -> Match | None:
    with warnings.catch_warnings(record=True) as caught, warning_always():
        warnings.simplefilter("always")
        try:
            program.run()
        except RuntimeError:
            if program.id not in ("anomaly-traceback", "anomaly-no-forward-info"):
                raise
    found = [match_message(str(w.message)) for w in caught]
    return next((m for m in found if m and program.id in (m.pattern, *m.siblings)), None)


def stderr(program: Program, capfd: pytest.CaptureFixture[str]) -> Match | None:
    with warning_always():
        program.run()
    found = find_messages(capfd.readouterr().err)
    return next((m for m in found if program.id in (m.pattern, *m.siblings)), None)


OBSERVE = {"error": error, "warning": warning, "stderr": stderr}
