"""Every statement of every report over field cases and injected programs, held against a run.

usage: run.py [--mode hook|check] [--part N [--first K]] [--injected COUNT] [--only ID]
"""

from __future__ import annotations

import argparse
import importlib
import io
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from itertools import islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from injection.generator import KINDS, programs
from sessions import in_new_process
from truth.oracle import NotTheSame, falsehoods

FIELD = Path(__file__).parent.parent / "field"
KNOWLEDGE = Path(__file__).parents[2] / "autograd_explain" / "knowledge"
_SPAN = re.compile(r"`([^`]+)`")


def notebooks(injected: int, part: int = 1, first: int = 0) -> Iterator[tuple[str, list[str]]]:
    """Name and cells of the field cases, and of injected programs (the silent kind included):
    every `part`-th, from the `first` on."""
    for folder in sorted(p.parent for p in FIELD.glob("*/*/truth.toml"))[first::part]:
        yield folder.name, _cells(folder / "case.py")
    for case in islice(programs(0, tuple(sorted(KINDS))), first, injected, part):
        yield case.name, list(case.wrong)


def _cells(path: Path) -> list[str]:
    parts = re.split(r"^# %%.*\n", path.read_text(), flags=re.MULTILINE)[1:]
    return [part.rstrip() for part in parts]


def judged(cells: list[str], mode: str) -> tuple[str, list[str] | None] | None:
    """Cause and false statements of the last report on a notebook; None where nothing came, and
    for the statements where the observed run ended otherwise."""
    report = in_new_process(reported, cells, mode)
    if report is None:
        return None
    return report["id"], in_new_process(held_against_a_run, report, cells)


def held_against_a_run(report: dict[str, Any], cells: list[str]) -> list[str] | None:
    """The false statements of a report; None where the observed run ended otherwise."""
    try:
        return falsehoods(report, cells, fixed_spans(report["id"]))
    except NotTheSame:
        return None


def reported(cells: list[str], mode: str) -> dict[str, Any] | None:
    """The last report that the extension gives on a notebook, up to its failure."""
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        shell.run_line_magic("load_ext", "autograd_explain")
        import autograd_explain

        shell.run_line_magic("config", "AutogradExplain.verify = False")
        shell.run_line_magic("config", "AutogradExplain.language = 'en'")
        if mode == "check":
            shell.run_line_magic("autograd_check", "on")
        for text in cells:
            if not shell.run_cell(text, store_history=True).success:
                break
        found = autograd_explain.last()
        return None if found is None else found.to_dict()


def fixed_spans(cause: str) -> frozenset[str]:
    """The code spans that stand in the cause's English text as they are."""
    text = (KNOWLEDGE / cause / "en.md").read_text()
    return frozenset(s for s in _SPAN.findall(text) if "{" not in s)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", default="check")
    parser.add_argument("--part", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--injected", type=int, default=0)
    parser.add_argument("--only", default="")
    given = parser.parse_args(arguments)
    count = reports = compared = false = 0
    for name, cells in notebooks(given.injected, given.part, given.first):
        if given.only not in name:
            continue
        count += 1
        found = judged(cells, given.mode)
        reports += found is not None
        compared += found is not None and found[1] is not None
        if found is not None and found[1]:
            false += 1
            print(f"{name} ({found[0]})", *found[1], sep="\n    ", flush=True)
    print(f"{given.mode}: {count} programs, {reports} reports,", end=" ")
    print(f"{compared} compared, {false} with a false statement")


if __name__ == "__main__":
    # By its name in the tests: the new processes look their functions up in the module.
    importlib.import_module("truth.run").main()
