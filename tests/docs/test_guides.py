"""The guide's own example is built from the guide and works."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from autograd_explain.cli import main
from autograd_explain.docs.guides import FOLDER
from autograd_explain.docs.player import play
from autograd_explain.knowledge.entry import entries
from autograd_explain.render import Explanation, accept
from autograd_explain.render.texts import load
from autograd_explain.render.topic_content import cells_of

_FILE = re.compile(r"^```\w+ (\w+\.\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAME = "acme_clip_recorded"


@pytest.fixture
def causes(tmp_path: Path) -> Path:
    """The folder around the guide's cause."""
    folder = tmp_path / "causes" / NAME
    folder.mkdir(parents=True)
    for name, text in _FILE.findall((FOLDER / "adding-a-cause.md").read_text("utf-8")):
        (folder / name).write_text(text, "utf-8")
    assert accept(folder, "ja") and accept(folder, "zh")
    return folder.parent


def test_its_texts_are_clean(causes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(causes / NAME)]) == 0, capsys.readouterr().out


def test_it_is_diagnosed_and_repaired(causes: Path) -> None:
    folder = causes / NAME
    case, fixed = (cells_of((folder / f"{n}.py").read_text("utf-8")) for n in ("case", "fixed"))
    diagnosis = play(case, causes=(str(causes),))
    assert diagnosis is not None and diagnosis.finding.cause == NAME
    entry = entries((str(causes),))[NAME]
    assert diagnosis.finding.facts == entry.example
    (edit,) = diagnosis.rewrites[0].edits
    assert (edit.cell, edit.new_source) == (2, fixed[1])
    shown = Explanation(diagnosis, "zh", texts=load(folder)).to_text()
    assert "`clip_(w, 1.0)` 在 autograd 记录期间执行" in shown
    assert play(fixed, causes=(str(causes),)) is None


def test_the_files_that_the_architecture_names_are_there() -> None:
    named = set(re.findall(r"`([\w/]+\.py)`", (FOLDER / "architecture.md").read_text("utf-8")))
    roots = FOLDER.parent, FOLDER.parent / "autograd_explain"
    assert {n for n in named if not any((root / n).exists() for root in roots)} == set()
    assert len(named) > 10
