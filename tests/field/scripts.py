"""Field cases as scripts, under `run` and `run --check`: what is told as in the notebook, and all
else as without us.

What a notebook gives is kept in `tests/expected`.  Each program runs as a file three times, each
time in a fork in which torch is loaded: by itself, and in both modes.

usage: scripts.py [FOLDER...] [--mode hook|check] [--only ID] [--part I/N] [--json OUT]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from expected.frozen import Case, blocks, file_of, lines_of  # noqa: E402  found where the tests are
from notebook import PATIENCE, without_time_limits  # noqa: E402
from sessions import Ran, Report, in_new_process  # noqa: E402

MODES = ("hook", "check")
KEYS = ("cause", "names", "lines", "rewrite", "ends")
NAME = "train.py"
_CELL = re.compile(r"^# %%", re.MULTILINE)
_PLACE = re.compile(rf"(?:In\[\d+\]|{NAME}):\d+")
_REPORT = re.compile(r"^(?=In\[\d+\] \w+ \w+$)", re.MULTILINE)


@dataclass(frozen=True)
class Ended:
    """How a program ended: all that it printed, in one; the reports; our own failures."""

    status: int
    printed: str
    told: tuple[dict[str, Any], ...] = ()
    trouble: str = ""


@dataclass(frozen=True)
class Row:
    """One program in one mode.  `differences` are by key; a key that agrees is not there."""

    case: str
    mode: str
    differences: dict[str, str]


def run_plainly(text: str) -> Ended:
    """The script as Python runs it."""
    file = _written(text)
    main = _as_main(file)

    def program() -> int:
        try:
            exec(compile(text, str(file), "exec", dont_inherit=True), main.__dict__)
        except Exception as error:
            own = error.__traceback__.tb_next if error.__traceback__ else None
            sys.excepthook(type(error), error.with_traceback(own), own)
            return 1
        return 0

    return Ended(_status_of(program), _printed())


def run_explained(text: str, mode: str) -> Ended:
    """The script under `python -m autograd_explain run`, without limits in seconds."""
    from autograd_explain.cli import main
    from autograd_explain.intercept import guard
    from autograd_explain.script import run

    told: list[dict[str, Any]] = []
    show = run.show

    def noted(explanation: Any) -> None:
        told.append(explanation.to_dict())
        show(explanation)

    options = ["--check", "--budget", str(PATIENCE)] if mode == "check" else []
    file = _written(text)
    noting = mock.patch.object(run, "show", noted)
    # In a thread nothing of ours stands above the program, as in a process of its own.
    with without_time_limits(), noting, ThreadPoolExecutor(1) as thread:
        status = _status_of(thread.submit(main, ["run", *options, str(file)]).result)
    return Ended(status, _printed(), tuple(told), guard.report())


def _status_of(program: Callable[[], int]) -> int:
    try:
        return program()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)


def _written(text: str) -> Path:
    file = Path(NAME).absolute()
    file.write_text(text, "utf-8")
    # Buffered as where both streams go to a file: their order is then that of a shell.
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    return file


def _as_main(file: Path) -> ModuleType:
    main = sys.modules["__main__"] = ModuleType("__main__")
    main.__dict__.update(__file__=str(file), __builtins__=__builtins__)
    sys.argv[:], sys.path[0] = [str(file)], str(file.parent)
    return main


def _printed() -> str:
    sys.stdout.flush()
    sys.stderr.flush()
    text = Path("printed.txt").read_text("utf-8", errors="replace")
    return text.replace(os.getcwd(), "")  # another one each time


# -- compared with the notebook ---------------------------------------------------------


def compare(case: Case, plain: Ended, text: str, mode: str) -> Row:
    found: dict[str, str] = {}
    try:
        ended = in_new_process(run_explained, text, mode, seconds=240)
    except RuntimeError as error:
        return Row(str(case), mode, {"ends": str(error)[-300:]})
    if (plain.status, plain.printed) != (ended.status, ended.printed[: len(plain.printed)]):
        found["ends"] = _first_difference(plain, ended)
    elif not ended.told and ended.printed != plain.printed:
        found["ends"] = f"printed besides: {ended.printed[len(plain.printed) :][:200]}"
    if ended.trouble:
        found["ends"] = ended.trouble
    expected = _judged(blocks(file_of(case.family, mode)).get(case.name, ""))
    reports = [_in_cells(report, text) for report in ended.told]
    given = "\n".join(lines_of(Ran(tuple(Report(1, report) for report in reports), "")))
    found |= _told_differently(expected, given)
    return Row(str(case), mode, found)


def _first_difference(plain: Ended, ended: Ended) -> str:
    if plain.status != ended.status:
        return f"status {plain.status} became {ended.status}"
    for one, other in zip(plain.printed.splitlines(), ended.printed.splitlines(), strict=False):
        if one != other:
            return f"{one!r} became {other!r}"
    return "less printed"


def _judged(block: str) -> str:
    """Of a notebook's reports, the last: that of the failure, or of what it does in the end."""
    parts = [part for part in _REPORT.split(block) if part.startswith("In[")]
    return parts[-1] if parts else ""


def _told_differently(expected: str, given: str) -> dict[str, str]:
    """What the best fitting report of the script tells otherwise."""
    parts = [part for part in _REPORT.split(given) if part.startswith("In[")]
    if not expected:
        return {"cause": f"nothing became {parts[-1].splitlines()[0]}"} if parts else {}
    if not parts:
        return {"cause": f"{expected.splitlines()[0]} became nothing"}
    wanted = _aspects(expected)
    offers = [_aspects(part) for part in reversed(parts)]
    rows = [{k: f"{w!r} became {o[k]!r}" for k, w in wanted.items() if o[k] != w} for o in offers]
    return min(rows, key=lambda row: ("cause" in row, len(row)))


def _aspects(part: str) -> dict[str, tuple[str, ...]]:
    """What is compared of a report's text."""
    head, *rest = part.splitlines()
    first = next((n for n, line in enumerate(rest) if line.startswith("  rewrite ")), len(rest))
    later = [n for n, line in enumerate(rest) if line.startswith("  rewrite ") and n > first]
    rewrite = rest[first : later[0] if later else len(rest)]
    told = rest[:first]
    return {
        "cause": (head.partition("] ")[2],),
        "names": tuple(line for line in told if line.startswith(("  culprit", "  root"))),
        "lines": tuple(found[0] for line in told if (found := re.match(r"  \w+ +\S+:\d+ ", line))),
        # Of several cells the changes come in the order of the edits, of a file in that of lines.
        "rewrite": tuple(sorted(_rewrite(rewrite))),
    }


def _rewrite(lines: list[str]) -> Iterator[str]:
    """A rewrite's title and outcome and its changed lines: a script is one file."""
    for number, line in enumerate(lines):
        if number == 1:  # why it was not tried is said in the words of the place
            yield line.partition(":")[0]
        elif number == 0 or re.match(r"    [-+]", line):
            yield _PLACE.sub("a line", line.rstrip())  # some titles name one


def _in_cells(report: dict[str, Any], text: str) -> dict[str, Any]:
    """A report on the script, its places told as those of the cells that it was made of."""
    starts = [text[: m.start()].count("\n") + 1 for m in _CELL.finditer(text)]

    def moved(place: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        if place is None or Path(place["file"] or "").name != NAME:
            return place
        cell = sum(start < place["line"] for start in starts)
        return {**place, "file": None, "cell": cell, "line": place["line"] - starts[cell - 1]}

    return {**report, "events": [{**e, "place": moved(e["place"])} for e in report["events"]]}


def rows_of(cases: list[Case], modes: tuple[str, ...]) -> Iterator[Row]:
    for case in cases:
        text = (HERE / str(case) / "case.py").read_text("utf-8")
        plain = in_new_process(run_plainly, text, seconds=120)
        for mode in modes:
            yield compare(case, plain, text, mode)


def table(rows: list[Row]) -> str:
    lines = []
    for mode in MODES:
        mine = [row for row in rows if row.mode == mode]
        if mine:
            as_there = {key: sum(key not in row.differences for row in mine) for key in KEYS}
            told = sum(not ({*row.differences} - {"ends"}) for row in mine)
            figures = " ".join(f"{key} {number}" for key, number in as_there.items())
            lines.append(f"{mode}: {len(mine)} programs, told as in a notebook {told}; {figures}")
    return "\n".join(lines)


def cases_in(folders: list[Path]) -> list[Case]:
    found = {path.parent for folder in folders for path in folder.resolve().rglob("truth.toml")}
    return [Case(path.parent.name, path.name) for path in sorted(found)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="*", type=Path, default=[HERE])
    parser.add_argument("--mode", choices=MODES)
    parser.add_argument("--only", default="")
    parser.add_argument("--part", default="1/1")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    number, count = map(int, given.part.split("/"))
    cases = [case for case in cases_in(given.folder) if given.only in case.name]
    rows = []
    for row in rows_of(cases[number - 1 :: count], (given.mode,) if given.mode else MODES):
        rows.append(row)
        for key, difference in row.differences.items():
            print(f"{row.case} {row.mode} {key}: {difference}", flush=True)
    print(table(rows))
    if given.json:
        given.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))


if __name__ == "__main__":
    main()
