"""The recipes of a guide do what it says: its files are written, its commands run in order."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import warm

from autograd_explain.docs.guides import FOLDER

PAGE = (FOLDER / "outside-a-notebook.md").read_text("utf-8")
_BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ANY = "…"


def commands(block: str) -> Iterator[tuple[str, list[str]]]:
    """Each command of a console block with the lines that it is to print."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, *lines = part.splitlines()
        yield command, [line.strip() for line in lines if line.strip() not in ("", ANY)]


def fits(expected: str, line: str) -> bool:
    pattern = ".*".join(map(re.escape, expected.split(ANY)))
    return re.fullmatch(pattern, line.strip()) is not None


def missing(expected: list[str], output: str) -> list[str]:
    """The expected lines that do not come, in this order."""
    lines = iter(output.splitlines())
    return [wanted for wanted in expected if not any(fits(wanted, line) for line in lines)]


def run(command: str, folder: Path) -> str:
    """What a command prints: plain Python in a process that has loaded torch already, anything
    else as a shell runs it."""
    words = shlex.split(command)
    if words[0] == "python" and not set(command) & set("<>|&;"):
        ended = warm.run(*words[1:], folder=folder)
        return ended.out + ended.err
    bin_folder = str(Path(sys.executable).parent)
    path = os.pathsep.join([bin_folder, os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**os.environ, **warm.VARIABLES, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=200,
    )
    return done.stdout


@pytest.mark.timeout(400)
def test_recipes(tmp_path: Path) -> None:
    ran = 0
    for language, name, text in _BLOCK.findall(PAGE):
        if name:
            (tmp_path / name).write_text(text, "utf-8")
        for command, expected in commands(text) if language == "console" else ():
            output = run(command, tmp_path)
            assert missing(expected, output) == [], f"$ {command}\n{output}"
            ran += 1
    assert ran >= 10


def test_a_line_that_does_not_come_is_missed() -> None:
    assert missing(["a…", "b"], "abc\n  b \n") == []
    assert missing(["b", "a…"], "abc\n  b \n") == ["a…"]
