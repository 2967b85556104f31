"""Causes from a folder of the user's or from an installed package, in a live session.

The cause is that of the guide in docs/adding-a-cause.md.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import autograd_explain
from autograd_explain.knowledge import entry
from autograd_explain.render import accept
from autograd_explain.render.topic_content import cells_of

GUIDE = Path(__file__).parents[2] / "docs" / "adding-a-cause.md"
FILE = re.compile(r"^```\w+ (\w+\.\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAME = "acme_clip_recorded"
LEAF = "import torch\nw = torch.ones(3, requires_grad=True)\nw += 1"


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    """Causes are looked for once a process: here after each change of what is installed."""
    entry._found.cache_clear()
    yield
    entry._found.cache_clear()
    for name in [m for m in sys.modules if m.startswith("acme_")]:
        del sys.modules[name]


@pytest.fixture
def causes(tmp_path: Path) -> Path:
    """A folder of causes, with the guide's in it."""
    folder = tmp_path / "acme_causes" / NAME
    folder.mkdir(parents=True)
    for name, text in FILE.findall(GUIDE.read_text("utf-8")):
        (folder / name).write_text(text, "utf-8")
    assert accept(folder, "ja") and accept(folder, "zh")
    return folder.parent


def install(folder: Path, points: str) -> None:
    """What pip leaves of a package with entry points."""
    info = folder / "acme_causes-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-causes\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[autograd_explain.causes]\n{points}\n")


@pytest.fixture
def package(causes: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of causes as an installed package."""
    (causes / "__init__.py").write_text("")
    install(causes.parent, "acme = acme_causes")
    monkeypatch.syspath_prepend(str(causes.parent))
    return causes


def fails_and_is_explained(run, causes: Path, monkeypatch, shell) -> None:
    """The guide's program, failing, explained and put right by the rewrite."""
    folder = causes / NAME
    case, fixed = (cells_of((folder / f"{n}.py").read_text("utf-8")) for n in ("case", "fixed"))
    before = len(list(shell.history_manager.input_hist_raw))
    for cell in case:
        run(cell)
    told = autograd_explain.last().to_dict()
    assert told["id"] == NAME
    assert told["events"][0]["place"]["source"] == "clip_(w, 1.0)"
    (edit,) = told["rewrites"][0]["edits"]
    assert (edit["cell"], edit["new_source"]) == (before + 1, fixed[1])
    offered: list[str] = []
    monkeypatch.setattr(
        type(shell), "set_next_input", lambda self, text, replace=False: offered.append(text)
    )
    run("%autograd_fix")
    assert offered == [fixed[1]]
    assert run(offered[0]).success


def test_an_installed_package(package, run, shell, monkeypatch, capsys):
    fails_and_is_explained(run, package, monkeypatch, shell)
    title = re.search(r"^title: (.*)$", (package / NAME / "en.md").read_text("utf-8"), re.M)[1]
    assert "left out" not in capsys.readouterr().err
    run(f"%autograd_explain {NAME}")
    assert title in capsys.readouterr().out


def test_a_folder_that_was_set(causes, run, shell, monkeypatch, session):
    run(f"%config AutogradExplain.causes = [{str(causes)!r}]")
    assert session.settings.causes == [str(causes)]
    fails_and_is_explained(run, causes, monkeypatch, shell)


def test_its_modules_import_each_other(causes, run, shell, monkeypatch, session):
    folder = causes / NAME
    rewrite = (folder / "rewrite.py").read_text("utf-8")
    imported = "from autograd_explain.rewrite.transforms.grad_mode import under_no_grad\n"
    (folder / "edits.py").write_text(imported)
    moved = rewrite.replace(imported, "from .edits import under_no_grad\n")
    assert moved != rewrite
    (folder / "rewrite.py").write_text(moved)
    run(f"%config AutogradExplain.causes = [{str(causes)!r}]")
    fails_and_is_explained(run, causes, monkeypatch, shell)


def test_its_own_message_is_looked_up(causes, run, capsys):
    run(f"%config AutogradExplain.causes = [{str(causes)!r}]")
    run("%autograd_explain RuntimeError: acme: refusing to clip in place, limit 2.5")
    out = capsys.readouterr().out
    assert NAME in out and "limit = 2.5" in out


def test_the_command_line_sees_the_package(package):
    environment = {**os.environ, "PYTHONPATH": str(package.parent)}
    command = [sys.executable, "-m", "autograd_explain"]
    for arguments in (["list", "acme"], ["check", str(package)]):
        done = subprocess.run(
            [*command, *arguments], env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stderr == ""


# What cannot be used


def lines_about_us(capsys) -> list[str]:
    err = capsys.readouterr().err
    return [line for line in err.splitlines() if line.startswith("autograd_explain")]


def leaf_is_explained(run) -> None:
    run(LEAF)
    assert autograd_explain.last().id == "leaf_written"


def test_a_folder_that_is_not_there(tmp_path, run, session, capsys, caplog):
    run(f"%config AutogradExplain.causes = [{str(tmp_path / 'none')!r}]")
    out = "".join(capsys.readouterr()) + caplog.text  # %config logs what a setting refuses
    assert out.count(f"causes: no such folder: {tmp_path / 'none'}") == 1
    assert session.settings.causes == []
    leaf_is_explained(run)
    assert lines_about_us(capsys) == []


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("diagnose.py", "def diagnose(scene:\n", "SyntaxError"),
        ("diagnose.py", "import acme_that_is_not_there\n", "ModuleNotFoundError"),
        ("en.md", "---\ntitle: [\n---\n", "ParserError"),
    ],
)
def test_a_broken_cause_is_left_out(causes, run, capsys, file, text, said):
    (causes / NAME / file).write_text(text, "utf-8")
    run(f"%config AutogradExplain.causes = [{str(causes)!r}]")
    leaf_is_explained(run)
    (line,) = lines_about_us(capsys)
    assert f"{causes / NAME} is left out: {said}" in line
    leaf_is_explained(run)
    assert lines_about_us(capsys) == []  # told once


def test_an_empty_folder(tmp_path, run, capsys):
    run(f"%config AutogradExplain.causes = [{str(tmp_path)!r}]")
    leaf_is_explained(run)
    (line,) = lines_about_us(capsys)
    assert "neither has an en.md nor holds folders that do" in line


def test_a_broken_package(tmp_path, run, capsys, monkeypatch):
    install(tmp_path, "acme = acme_causes.not_there")
    monkeypatch.syspath_prepend(str(tmp_path))
    leaf_is_explained(run)
    (line,) = lines_about_us(capsys)
    assert "entry point acme (acme_causes.not_there): ModuleNotFoundError" in line


def test_another_folder_with_the_same_name(causes, tmp_path, run):
    """The second folder's module is used, not the first one's."""
    other = tmp_path / "others" / NAME
    other.mkdir(parents=True)
    for path in (causes / NAME).iterdir():
        text = path.read_text("utf-8").replace("acme: refusing", "acme 2: refusing")
        (other / path.name).write_text(text, "utf-8")
    for root, prefix in ((causes, "acme"), (other.parent, "acme 2")):
        run(f"%config AutogradExplain.causes = [{str(root)!r}]")
        run(
            f"def clip_(w, limit):\n    raise RuntimeError('{prefix}: refusing to clip in place, "
            "limit 1.0')"
        )
        run("clip_(1, 1.0)")
        assert autograd_explain.last().id == NAME
        assert autograd_explain.last().diagnosis.message.startswith(f"{prefix}:")
