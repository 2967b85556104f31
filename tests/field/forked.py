"""Score many field cases quickly: torch is loaded once, every step of a case runs in a fork.

The judgement is score.py's, imported: only the way in which a step is run differs.

usage: forked.py FOLDER... [--mode hook|check] [--only ID] [--without MODULE] [--json OUT] [--quiet]
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
if sys.version_info < (3, 11):
    sys.modules["tomllib"] = importlib.import_module("tomli")

from sessions import in_new_process  # noqa: E402  found where the tests are

KEYS = tuple("explained names cause saved rewrite repaired claimed_verified false_verified".split())


def load_scorer() -> ModuleType:
    """score.py as a module, with its steps run in forks."""
    spec = importlib.util.spec_from_file_location("field_score", HERE / "score.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.__dict__["run"] = run_forked
    return module


def run_forked(code: str, payload: object, py: str, limit: float = 120) -> tuple[Any, str]:
    """As score.run: run one step's code on a payload; its result and what it printed."""
    try:
        return in_new_process(_step, code, payload, seconds=limit), ""
    except RuntimeError as error:
        return None, str(error)


def _step(code: str, payload: object) -> Any:
    """A step as the program that it is, in a process that is its own."""
    given, result = Path("a.json"), Path("b.json")
    given.write_text(json.dumps(payload))
    sys.argv = ["step", str(given), str(result)]
    sys.modules["__main__"] = main = ModuleType("__main__")
    sys.path.insert(0, "")  # modules that the notebook writes
    exec(compile(code, "<step>", "exec"), main.__dict__)
    return json.loads(result.read_text())


def score_all(
    folders: list[Path],
    mode: str,
    only: str = "",
    say: bool = False,
    part: int = 1,
    batch: str = "",
    without: str = "",
) -> list[dict[str, Any]]:
    """One row per case of these folders, in score.py's words; every `part`-th case."""
    scorer = load_scorer()
    rows = []
    found = {path.parent for folder in folders for path in folder.rglob("truth.toml")}
    for case in sorted(found)[::part]:
        if only not in case.name or batch not in ("", batch_of(case)):
            continue
        if without and f"import {without}" in (case / "case.py").read_text():
            continue
        if mode == "hook" and 'kind = "silent"' in (case / "truth.toml").read_text():
            continue
        row = scorer.score(case, mode, sys.executable)
        rows.append(row)
        if say:
            print(line_of(row), flush=True)
    return rows


def batch_of(case: Path) -> str:
    """With which others a case was written; the public ones are those of the folder `cases`."""
    truth = (case / "truth.toml").read_text()
    found = re.search(r'^batch = "(\w+)"$', truth, re.MULTILINE)
    return found[1] if found else case.parent.name


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
    parser.add_argument("--without", default="", help="only the cases that do not import this")
    parser.add_argument("--json", default="")
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("--batch", default="", help="only the cases that were written together")
    parser.add_argument("--part", type=int, default=1, help="every n-th case only")
    given = parser.parse_args()
    rows = score_all(
        given.folder,
        given.mode,
        given.only,
        not given.quiet,
        given.part,
        given.batch,
        given.without,
    )
    print(given.mode, " ".join(f"{key} {value}" for key, value in totals(rows).items()))
    if given.json:
        Path(given.json).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
