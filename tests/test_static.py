"""The code keeps to the linter's, the formatter's and the type checker's rules."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CHECKS = ("ruff check", "ruff format --check", "mypy")


@pytest.mark.timeout(900)  # without a cache mypy reads all of torch
@pytest.mark.parametrize("check", CHECKS)
def test_static_check(check: str) -> None:
    command = [sys.executable, "-m", *check.split()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
