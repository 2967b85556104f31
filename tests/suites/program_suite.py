"""Notebooks and scripts, each run plain, with the extension, and watched: what differs.

usage: program_suite.py PATH... [--first FILE] [--load MODULE] [--part I/N] [--json OUT]

PATH is a notebook, a script, or a folder with such.  Every program runs in its own copy of its
folder.  It runs plain twice first: what differs between those two runs (a clock that is printed)
is not compared.  --first names a file that runs as a first cell (seeds), --load a module that is
imported once, before all (data in place of downloads, libraries).  The programs are taken to be
correct: any report is a false alarm.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import three_ways
from three_ways import Outcome

_LEFT_OUT = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints", ".git")


@dataclass(frozen=True)
class Row:
    """One program in three ways; `differences` and `said` are by way."""

    program: str
    cells: int
    error: str
    unsteady: tuple[str, ...]
    differences: dict[str, tuple[str, ...]]
    said: dict[str, tuple[str, ...]]
    seconds: dict[str, float]

    @property
    def clean(self) -> bool:
        return not (any(self.differences.values()) or any(self.said.values()))


def cells_of(path: Path) -> list[str]:
    """The code of a notebook by cells; a script is one cell, or one for each `# %%`."""
    text = path.read_text()
    if path.suffix == ".ipynb":
        found = json.loads(text)["cells"]
        return ["".join(c["source"]) for c in found if c["cell_type"] == "code"]
    cells: list[list[str]] = [[]]
    for line in text.splitlines(keepends=True):
        if line.startswith("# %%"):
            cells.append([])
        cells[-1].append(line)
    return [cell for lines in cells if (cell := "".join(lines)).strip()]


def programs_in(paths: list[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(p for p in path.rglob("*") if p.suffix in (".py", ".ipynb"))
        else:
            yield path


def compare(path: Path, first: str = "", limit: float = 120) -> Row:
    """Run a program plain twice, then with the extension, then watched."""
    cells = ([first] if first else []) + cells_of(path)
    ran = {}
    for way in ("plain", "again", "hook", "check"):
        outcome = _run(path, cells, "plain" if way == "again" else way, limit)
        if outcome is None:
            late = f"{way} took longer than {limit:.0f} s"
            return Row(path.name, len(cells), late, (), {way: (late,)}, {}, {})
        ran[way] = outcome
    return _row(path.name, len(cells), ran)


def _row(name: str, cells: int, ran: dict[str, Outcome]) -> Row:
    plain = ran["plain"]
    unsteady = tuple(plain.differences(ran["again"]))
    known = {_subject(line) for line in unsteady}
    ways = ("hook", "check")
    return Row(
        name,
        cells,
        plain.errors[-1],
        unsteady,
        {w: tuple(d for d in plain.differences(ran[w]) if _subject(d) not in known) for w in ways},
        {w: tuple(three_ways.said(ran[w])) for w in ways},
        {w: ran[w].seconds for w in ("plain", *ways)},
    )


def _subject(difference: str) -> str:
    """Of what a difference is: `printed`, or `values: loss`."""
    what, _, rest = difference.partition(": ")
    return f"{what} {rest.partition(':')[0]}" if what in ("values", "state") else what


def _run(path: Path, cells: list[str], way: str, limit: float) -> Outcome | None:
    folder = Path(tempfile.gettempdir()) / f"program-{os.getpid()}"  # one name: programs show it
    shutil.copytree(path.parent, folder, ignore=_LEFT_OUT)
    try:
        return three_ways.run(cells, way, limit=limit, folder=folder)
    finally:
        shutil.rmtree(folder)


def table(rows: list[Row]) -> str:
    ran = [r for r in rows if not r.error]
    plain = sum(r.seconds["plain"] for r in ran)
    costs = {w: sum(r.seconds[w] for r in ran) for w in ("hook", "check")}
    ratios = [f"{w} {spent / plain:.2f} x" for w, spent in costs.items() if plain]
    differ = {w: sum(bool(r.differences.get(w)) for r in rows) for w in ("hook", "check")}
    alarms = {w: sum(bool(r.said.get(w)) for r in rows) for w in ("hook", "check")}
    cells = sum(r.cells for r in ran)
    return (
        f"{len(rows)} programs, {len(ran)} run to their end ({cells} cells); "
        f"differ: hook {differ['hook']}, check {differ['check']}; "
        f"something said: hook {alarms['hook']}, check {alarms['check']}; "
        f"{', '.join((f'{plain:.0f} s plain', *ratios))}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", nargs="+", type=Path)
    parser.add_argument("--first", type=Path)
    parser.add_argument("--load", default="")
    parser.add_argument("--only", default="")
    parser.add_argument("--part", default="1/1")
    parser.add_argument("--limit", type=float, default=120)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    if given.load:
        importlib.import_module(given.load)
    three_ways.preload()
    first = given.first.read_text() if given.first else ""
    found = [p.resolve() for p in programs_in(given.path) if given.only in str(p)]
    rows: list[Row] = []
    for path in three_ways.parted(found, given.part):
        row = compare(path, first, given.limit)
        rows.append(row)
        _say(row)
    if rows:
        print(table(rows))
    if given.json:
        given.json.write_text(json.dumps([vars(r) for r in rows], indent=0))


def _say(row: Row) -> None:
    ratio = row.seconds.get("check", 0.0) / max(row.seconds.get("plain", 0.0), 1e-9)
    state = row.error or ("as plain" if row.clean else "DIFFERS")
    print(f"{row.program}: {row.cells} cells, {ratio:.2f} x, {state}", flush=True)
    for way in row.differences:
        for line in (*row.differences[way], *row.said.get(way, ())):
            print(f"  {way}: {line}", flush=True)
    for line in row.unsteady:
        print(f"  plain, twice: {line}", flush=True)


if __name__ == "__main__":
    main()
