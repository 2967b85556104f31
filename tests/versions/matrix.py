"""The public field cases and a sample of the suite on other releases of torch, Python and IPython.

Each row gets a virtual environment of its own, kept in a folder and made anew where the row's
packages change.  What a torch wheel lacks without a GPU is stubbed (`stub_libraries.py`).  The
table is Markdown; a row that cannot be built says why.

usage: python tests/versions/matrix.py [ROW...] [--folder DIR] [--list]
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import tomllib
from stub_libraries import add_stubs

ROOT = Path(__file__).parents[2]
CASES = ROOT / "tests" / "field" / "cases"
#: What reads torch's own objects and messages most.
SAMPLE = ("tests/match", "tests/record", "tests/intercept/test_silent.py")
_TESTING = ("numpy", "pytest", "pytest-timeout", "hypothesis", "expecttest", "nbformat", "tomli")
_NEEDS_A_GPU = re.compile(r"nvidia-|cuda-|triton")
_FLOOR = re.compile(r"(?P<name>[\w-]+)>=(?P<floor>[\d.]+)")


@dataclass(frozen=True)
class Row:
    """An environment: releases, further pins, and a package that it goes without."""

    name: str
    torch: str
    python: str
    ipython: str
    pins: tuple[str, ...] = ()
    without: str = ""


def _floors() -> tuple[str, ...]:
    """The lowest releases that pyproject.toml declares, torch's and IPython's aside."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    found = [match for match in map(_FLOOR.fullmatch, declared) if match]
    return tuple(
        f"{match['name']}=={match['floor']}.*"
        for match in found
        if match["name"] not in ("torch", "ipython")
    )


_OLD_KERNEL = ("ipykernel==6.17.1", "setuptools<82")
ROWS = (
    Row("kaggle", "2.10.0", "3.12", "7.34.0", _OLD_KERNEL),
    Row("colab", "2.11.0", "3.13", "7.34.0", _OLD_KERNEL),
    Row("python-3.10", "2.12.1", "3.10", "8.39.0"),
    Row("floors", "2.13.0", "3.11", "7.34.0", (*_floors(), *_OLD_KERNEL)),
    Row("debian-12", "2.13.0", "3.11.2", "9.18.1"),
    Row("usual", "2.13.0", "3.11", "9.18.1"),
    Row("newest", "2.15.0", "3.13", "9.18.1"),
    Row("newest-without-numpy", "2.15.0", "3.13", "9.18.1", without="numpy"),
)


@dataclass(frozen=True)
class Outcome:
    """What a row showed: how many cases are right in everything, and pytest's closing line."""

    hook: str
    check: str
    sample: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("row", nargs="*", help=", ".join(row.name for row in ROWS))
    parser.add_argument("--folder", type=Path, default=ROOT / ".versions")
    parser.add_argument("--no-sample", action="store_true", help="only the field cases")
    given = parser.parse_args()
    unknown = set(given.row) - {row.name for row in ROWS}
    if unknown:
        parser.error(f"no such row: {', '.join(sorted(unknown))}")
    print("| row | torch | Python | IPython | hook | check | sample of the suite |")
    print("|---|---|---|---|---|---|---|")
    for row in ROWS:
        if not given.row or row.name in given.row:
            print(_line(row, given.folder, not given.no_sample), flush=True)


def _line(row: Row, folder: Path, sample: bool) -> str:
    try:
        python = built(row, folder)
    except subprocess.CalledProcessError as error:
        told = (error.stderr or "").strip().splitlines() or [str(error)]
        found = [f"not built: {told[-1]}", "–", "–"]
    else:
        outcome = tried(row, python, sample)
        found = [outcome.hook, outcome.check, outcome.sample]
    cells = (row.name, row.torch, row.python, row.ipython, *found)
    return f"| {' | '.join(cells)} |"


def built(row: Row, folder: Path) -> Path:
    """The interpreter of the row's environment."""
    home = folder / row.name
    python, complete = home / "bin" / "python", home / "complete"
    if complete.exists() and complete.read_text() == repr(row):
        return python
    shutil.rmtree(home, ignore_errors=True)
    _call(_interpreter(row.python), "-m", "venv", str(home))
    _pip(python, "--no-deps", f"torch=={row.torch}")
    site = Path(_call(str(python), "-c", "import sysconfig as s; print(s.get_path('purelib'))"))
    add_stubs(site / "torch")
    testing = [needed for needed in _TESTING if needed != row.without]
    _pip(python, *_wanted(site), *row.pins, f"ipython=={row.ipython}", *testing)
    complete.write_text(repr(row))
    return python


def _interpreter(version: str) -> str:
    """That Python, a release or the newest of a series, among pyenv's or on the path."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    if version.count(".") == 1:
        built = sorted(map(str, pyenv.glob(f"{version}.*/bin/python")))
        return built[-1] if built else f"python{version}"
    name = f"python{version.rpartition('.')[0]}"
    for python in (pyenv / version / "bin" / name, *(Path(p, name) for p in os.get_exec_path())):
        if python.exists() and _call(str(python), "-V") == f"Python {version}":
            return str(python)
    return f"python{version}"


def _wanted(site: Path) -> list[str]:
    """What torch and this project require, but for torch and what only a GPU asks for."""
    (metadata,) = site.glob("torch-*.dist-info/METADATA")
    of_torch = re.findall(r"^Requires-Dist: ([^;\n]+)$", metadata.read_text(), re.MULTILINE)
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    ours = [needed for needed in declared if not needed.startswith("torch")]
    return [needed for needed in of_torch if not _NEEDS_A_GPU.match(needed)] + ours


def tried(row: Row, python: Path, sample: bool) -> Outcome:
    """Score the field cases in both modes and run the sample."""
    scorer = str(ROOT / "tests" / "field" / "forked.py")
    scored = (scorer, str(CASES), "--quiet", "--without", row.without)
    hook, check = (_right(_last(python, *scored, "--mode", mode)) for mode in ("hook", "check"))
    tests = [str(ROOT / name) for name in SAMPLE]
    plain = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(ROOT))
    # Without a package that the tests ask for, they say nothing of the row.
    run = sample and not row.without
    return Outcome(hook, check, _last(python, *plain, *tests) if run else "not run")


def _right(closing: str) -> str:
    """The cases that are explained with the right names and cause, and repaired; how many of them
    by a rewrite that was proven, which none is where the trying fails."""
    found = {key: int(number) for key, number in re.findall(r"(\w+) (\d+)", closing)}
    if "cases" not in found:
        return closing
    right = min(found[key] for key in ("explained", "names", "cause", "repaired"))
    proven = f"{found['claimed_verified']} verified, {found['false_verified']} falsely"
    return f"{right} of {found['cases']}, {proven}"


def _last(python: Path, *command: str) -> str:
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run(
        [str(python), *command], capture_output=True, text=True, env=environment, cwd=ROOT
    )
    told = (done.stdout.strip() or done.stderr.strip()).splitlines()
    return told[-1] if told else f"exit status {done.returncode}"


def _pip(python: Path, *packages: str) -> None:
    _call(str(python), "-m", "pip", "install", "-qq", "--disable-pip-version-check", *packages)


def _call(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
