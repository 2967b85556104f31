"""The cases of the knowledge base, each run once in a real IPython shell, for all the tests."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from unittest import mock

from notebook import PATIENCE, captured, cells_of, shell_with_extension

from autograd_explain import pipeline
from autograd_explain.intercept import guard, screen
from autograd_explain.knowledge.entry import Entry, entries
from autograd_explain.model import Confidence, Diagnosis, Kind, Rewrite
from autograd_explain.render.explanation import Explanation

WITH_CASE = tuple(e for e in entries().values() if (e.folder / "case.py").exists())


@dataclass(frozen=True)
class Played:
    """What a notebook's first incident was taken for.

    `pattern` is the message or signal that was recognised, `claims` how strongly each cause that
    lists it claimed the incident, `details` what each of them hands to its rewrites.  `trouble` is
    what went wrong inside the extension, `output` what the notebook printed and raised.
    """

    diagnosis: Diagnosis | None
    pattern: str = ""
    claims: Mapping[str, Confidence] = field(default_factory=dict)
    trouble: str = ""
    output: str = ""
    details: Mapping[str, object] = field(default_factory=dict)

    @property
    def kind(self) -> Kind | None:
        return None if self.diagnosis is None else self.diagnosis.kind


def program(entry: Entry, name: str) -> tuple[str, ...]:
    """The cells of the folder's notebook `case` or `fixed`."""
    return cells_of((entry.folder / f"{name}.py").read_text("utf-8"))


def edited(cells: Sequence[str], rewrite: Rewrite) -> tuple[str, ...]:
    """The notebook with a rewrite applied; the edits of a case are in its own cells."""
    new = dict(enumerate(cells, 1))
    for edit in rewrite.edits:
        assert edit.cell in new, f"an edit outside the notebook: {edit.file or edit.cell}"
        assert new[edit.cell] == edit.old_source, "the edit is of another text than the cell's"
        new[edit.cell] = edit.new_source
    return tuple(new.values())


@cache
def played(name: str) -> Played:
    """The case as a user meets it: after an error or a warning, or where nothing is raised, in
    a watched session; where it takes another run of the cell to know more, with that."""
    entry = entries()[name]
    cells = program(entry, "case")
    found = play(cells)
    if found.diagnosis is None:
        found = play(cells, watched=True)
        rewrites = found.diagnosis is not None and found.diagnosis.rewrites
        if not rewrites and (entry.folder / "fixed.py").exists():
            found = checked(name)
    return found


@cache
def checked(name: str) -> Played:
    """The case in a watched session, its rewrites tried."""
    return play(program(entries()[name], "case"), watched=True, verify=True)


def play(cells: Sequence[str], *, watched: bool = False, verify: bool = False) -> Played:
    """Run a notebook up to the first cell that has something to explain."""
    with shell_with_extension() as shell, claims() as seen, captured() as output:
        if watched:
            shell.run_line_magic(
                "autograd_check", f"on --budget {PATIENCE}" if verify else "on --no-verify"
            )
        for cell in cells:
            result = shell.run_cell(cell, store_history=True)
            if seen.shown or not result.success:
                break
        return Played(
            seen.shown[0].diagnosis if seen.shown else None,
            seen.pattern,
            seen.claims,
            guard.report(),
            output.getvalue(),
            seen.details,
        )


class Seen:
    """The claims on the first incident that a message or signal was recognised in, and every
    explanation that was shown."""

    def __init__(self) -> None:
        self.pattern = ""
        self.claims: dict[str, Confidence] = {}
        self.details: dict[str, object] = {}
        self.shown: list[Explanation] = []
        self._diagnose, self._show = pipeline.diagnose, screen.show

    def show(self, shell: Any, shown: Explanation) -> None:
        self.shown.append(shown)
        self._show(shell, shown)

    def __call__(self, incident: Any, scene: Any, causes: Any) -> Any:
        causes = tuple(causes)
        if not self.pattern:
            self.pattern = scene.match.pattern
            for entry in causes:
                finding = self._diagnose(incident, scene, (entry,))
                if finding.cause == entry.name:
                    self.claims[entry.name] = finding.confidence
                    self.details[entry.name] = finding.details
        return self._diagnose(incident, scene, causes)


def explained(cells: Sequence[str]) -> Diagnosis:
    """What the first error of the cells is taken for."""
    found = play(cells)
    assert found.trouble == ""
    assert found.diagnosis is not None, found.output
    return found.diagnosis


def added(cells: Sequence[str], repaired: Sequence[str]) -> list[str]:
    """The lines of the repaired cells that are new, without their indentation."""
    before = [line for cell in cells for line in cell.splitlines()]
    return [line.strip() for cell in repaired for line in cell.splitlines() if line not in before]


@contextlib.contextmanager
def claims() -> Iterator[Seen]:
    seen = Seen()
    with (
        mock.patch.object(pipeline, "diagnose", seen),
        mock.patch.object(screen, "show", seen.show),
    ):
        yield seen
