"""Score many field cases quickly: torch is loaded once, every step of a case runs in a fork.

The judgement is score.py's, imported: only the way in which a step is run differs.

usage: forked.py FOLDER... [--mode hook|check] [--only ID] [--json OUT] [--quiet]
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import ModuleType
from typing import Any

HERE = Path(__file__).parent
KEYS = tuple("explained names cause saved rewrite repaired claimed_verified false_verified".split())


def load_scorer() -> ModuleType:
    """score.py as a module, with its steps run in forks."""
    spec = importlib.util.spec_from_file_location("field_score", HERE / "score.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.__dict__["run"] = run_forked
    return module


def preload() -> None:
    """Everything that a step needs, loaded before the first fork."""
    import IPython.core.interactiveshell
    import libcst
    import numpy
    import rich.console
    import torch

    assert IPython and libcst and numpy and rich
    torch.set_num_threads(1)


def run_forked(code: str, payload: object, py: str, limit: float = 120) -> tuple[Any, str]:
    """As score.run: run one step's code on a payload; its result and what it printed."""
    with tempfile.TemporaryDirectory() as folder:
        given, result, printed = (Path(folder, name) for name in ("a.json", "b.json", "out.txt"))
        given.write_text(json.dumps(payload))
        child = os.fork()
        if child == 0:
            _step(code, folder, [str(given), str(result)], printed)
        if not _ended(child, limit):
            raise subprocess.TimeoutExpired(code[:40], limit)
        log = printed.read_text(errors="replace") if printed.exists() else ""
        return (json.loads(result.read_text()) if result.exists() else None), log


def _step(code: str, folder: str, arguments: list[str], printed: Path) -> None:
    """The child's whole life: leaves with os._exit, so nothing of the parent's runs twice."""
    try:
        os.setsid()
        out = os.open(printed, os.O_WRONLY | os.O_CREAT)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out, 1)
        os.dup2(out, 2)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
        os.chdir(folder)
        os.environ["IPYTHONDIR"] = folder + "/ip"
        sys.argv = ["step", *arguments]
        sys.path.insert(0, folder)
        main = ModuleType("__main__")
        sys.modules["__main__"] = main
        exec(compile(code, "<step>", "exec"), main.__dict__)
        sys.stdout.flush()
    except BaseException as error:
        with contextlib.suppress(Exception):
            print(f"{type(error).__name__}: {error}", flush=True)
    finally:
        os._exit(0)


def _ended(child: int, limit: float) -> bool:
    """Wait for the child, and end its whole group when it takes too long."""
    watch = os.pidfd_open(child) if hasattr(os, "pidfd_open") else None
    try:
        end = time.monotonic() + limit
        if watch is not None:
            select.select([watch], [], [], limit)
        while time.monotonic() < end:
            if os.waitpid(child, os.WNOHANG)[0]:
                return True
            time.sleep(0.01)
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return False
    finally:
        if watch is not None:
            os.close(watch)


def score_all(
    folders: list[Path], mode: str, only: str = "", say: bool = False, part: int = 1
) -> list[dict[str, Any]]:
    """One row per case of these folders, in score.py's words; every `part`-th case."""
    preload()
    scorer = load_scorer()
    rows = []
    found = sorted(path.parent for folder in folders for path in folder.glob("*/truth.toml"))
    for case in found[::part]:
        if only and only not in case.name:
            continue
        if mode == "hook" and 'kind = "silent"' in (case / "truth.toml").read_text():
            continue
        row = scorer.score(case, mode, sys.executable)
        rows.append(row)
        if say:
            print(line_of(row), flush=True)
    return rows


def line_of(row: dict[str, Any]) -> str:
    marks = " ".join(f"{k[:4]}{'-' if row[k] is None else int(bool(row[k]))}" for k in KEYS)
    return f"{row['id'][:44]:44} {marks} {row.get('entry', '')} {row['note'][:120]}"


def totals(rows: list[dict[str, Any]]) -> dict[str, int]:
    found = {key: sum(bool(row[key]) for row in rows) for key in KEYS}
    found["with_saved"] = sum(row["saved"] is not None for row in rows)
    found["cases"] = len(rows)
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="+", type=Path)
    parser.add_argument("--mode", default="hook")
    parser.add_argument("--only", default="")
    parser.add_argument("--json", default="")
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("--part", type=int, default=1, help="every n-th case only")
    given = parser.parse_args()
    rows = score_all(given.folder, given.mode, given.only, not given.quiet, given.part)
    print(given.mode, " ".join(f"{key} {value}" for key, value in totals(rows).items()))
    if given.json:
        Path(given.json).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
