"""PyTorch's own tests, each run plain and in a watched cell: what differs between the two.

usage: torch_suite.py FILE... [--only TEXT] [--part I/N] [--explain] [--json OUT]

FILE is a test file of PyTorch's repository (test/test_autograd.py).  Each test runs in two forks;
outcome, error text, warnings and what is left of torch's state are compared, and every report of
the recorder on a test that passes counts as a false alarm.  With --explain, each error that a
test expects is handed to `autograd_explain.explain`, and the answers are counted instead.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import sys
import time
import unittest
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import three_ways

_SLOW = 2.0  # seconds that one explanation may take
_LONG = 0.1  # seconds of a test whose time tells something of the recorder's cost


@dataclass(frozen=True)
class Row:
    """One test in two ways."""

    test: str
    outcome: str
    differences: tuple[str, ...]
    said: tuple[str, ...]
    plain: float
    watched: float


class Kept(unittest.TestResult):
    """How each test ended, as text."""

    def __init__(self) -> None:
        super().__init__()
        self.ended: list[str] = []

    def addSuccess(self, test: Any) -> None:
        self.ended.append("passed")

    def addSkip(self, test: Any, reason: str) -> None:
        self.ended.append(f"skipped: {reason}")

    def _failed(self, test: Any, error: Any) -> None:
        self.ended.append(f"{error[0].__name__}: {error[1]}")

    addError = addFailure = addExpectedFailure = _failed  # type: ignore[assignment]

    def addSubTest(self, test: Any, subtest: Any, error: Any) -> None:
        if error is not None:
            self._failed(subtest, error)

    def addUnexpectedSuccess(self, test: Any) -> None:
        self.ended.append("unexpected success")


def load(path: Path) -> ModuleType:
    """A test file as a module; its folder stays on the path, as its own imports need it."""
    sys.argv = [str(path)]
    sys.path[:0] = [str(path.parent), *(str(p) for p in path.parents if p.name == "test")]
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def tests_of(module: ModuleType) -> Iterator[unittest.TestCase]:
    pending: list[Any] = [unittest.defaultTestLoader.loadTestsFromModule(module)]
    while pending:
        found = pending.pop()
        if isinstance(found, unittest.TestCase):
            yield found
        else:
            pending.extend(reversed(list(found)))


def compare(test: unittest.TestCase, limit: float) -> Row:
    name = test.id()
    plain, watched = (_run(test, way, limit) for way in ("plain", "check"))
    if plain is None or watched is None:
        ended = f"{'plain' if plain is None else 'watched'} took longer than {limit:.0f} s"
        return Row(name, ended, (ended,) if plain is not None else (), (), 0.0, 0.0)
    return Row(
        name,
        "; ".join(plain.wanted or plain.errors),
        tuple(plain.differences(watched)),
        tuple(three_ways.said(watched)),
        plain.seconds,
        watched.seconds,
    )


def _run(test: unittest.TestCase, way: str, limit: float) -> three_ways.Outcome | None:
    kept = Kept()
    cells = ["test(kept)\nended = kept.ended"]
    names = {"test": test, "kept": kept}
    return three_ways.run(cells, way, names, limit, "AutogradExplain.verify = False", "ended")


def explain(test: unittest.TestCase, limit: float) -> list[tuple[str, str, float]]:
    """(message, answer, seconds) of each error that the test expects, handed to `explain`."""
    names = {"test": test, "explaining": explaining, "kept": Kept(), "answers": []}
    done = three_ways.run(
        ["with explaining(answers):\n    test(kept)"], "hook", names, limit, wanted="answers"
    )
    return [("", "timeout", limit)] if done is None or done.wanted is None else done.wanted


@contextmanager
def explaining(answers: list[tuple[str, str, float]]) -> Iterator[None]:
    """Ask for an explanation of every error that unittest's `assertRaises` catches."""
    import autograd_explain

    expected: Any = unittest.case._AssertRaisesContext  # type: ignore[attr-defined]
    leave = expected.__exit__

    def asking(self: Any, kind: Any, error: Any, trace: Any) -> Any:
        if isinstance(error, Exception):
            started = time.process_time()
            try:
                found = autograd_explain.explain(error)
                answer = "none" if found is None else found.id
            except Exception as crash:
                answer = f"crash: {type(crash).__name__}: {crash}"
            answers.append((str(error), answer, time.process_time() - started))
        return leave(self, kind, error, trace)

    expected.__exit__ = asking
    try:
        yield
    finally:
        expected.__exit__ = leave


def table(rows: list[Row]) -> str:
    """One line: how many tests, how many differ, alarms, and the ratio of time.

    A warning of torch's is reported as one; an alarm is what the recorder alone believes."""
    passed = [r for r in rows if r.outcome == "passed"]
    skipped = sum(r.outcome.startswith("skipped") for r in rows)
    differ = sum(bool(r.differences) for r in rows)
    alarms = sum(any("report: silent" in s or "worth_a_look" in s for s in r.said) for r in rows)
    limits = sum(any(not s.startswith("report") for s in r.said) for r in rows)
    timed = [r for r in passed if not r.said and r.plain > _LONG]
    plain, watched = sum(r.plain for r in timed), sum(r.watched for r in timed)
    return (
        f"{len(rows)} tests ({len(passed)} pass, {skipped} skipped), {differ} differ, "
        f"{alarms} alarms, {limits} with limits; {len(timed)} without report and over {_LONG} s: "
        f"{plain:.1f} s plain, {watched:.1f} s watched"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="+", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--part", default="1/1")
    parser.add_argument("--explain", action="store_true")
    parser.add_argument("--limit", type=float, default=60)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    three_ways.preload()
    importlib.import_module("torch._dynamo")  # PyTorch's TestCase asks for it before each test

    kept: list[Any] = []
    for path in given.file:
        found = [t for t in tests_of(load(path.resolve())) if given.only in t.id()]
        found = three_ways.parted(found, given.part)
        ask = explain_all if given.explain else compare_all
        rows, line = ask(found, given.limit)
        print(f"{path.name}: {line}", flush=True)
        kept += rows
    if given.json:
        given.json.write_text(json.dumps(kept, indent=0))


def compare_all(tests: list[unittest.TestCase], limit: float) -> tuple[list[Any], str]:
    rows = []
    for test in tests:
        row = compare(test, limit)
        rows.append(row)
        for line in (*row.differences, *row.said):
            print(f"  {row.test}: {line}", flush=True)
    return [vars(r) for r in rows], table(rows)


def explain_all(tests: list[unittest.TestCase], limit: float) -> tuple[list[Any], str]:
    rows: list[Any] = []
    for test in tests:
        for message, answer, seconds in explain(test, limit):
            rows.append((test.id(), message, answer, seconds))
            if answer in ("unknown", "timeout") or answer.startswith("crash") or seconds > _SLOW:
                print(f"  {test.id()}: {answer}, {seconds:.1f} s: {message[:300]}", flush=True)
    answers = Counter(r[2].partition(":")[0] for r in rows)
    slow = sum(r[3] > _SLOW for r in rows)
    return rows, f"{len(rows)} errors, {slow} took over {_SLOW:.0f} s: {answers.most_common()}"


if __name__ == "__main__":
    main()
