"""How many field notebooks the search repairs alone, the causes' own rewrites left out.

    python tests/repair/search_alone.py                       # all, some 8 s a notebook
    python tests/repair/search_alone.py --only used_graphs --beside --json found.json
    python tests/repair/search_alone.py --hook                # what is told where nothing is run

`--beside` tells also what the cause itself proposes first: where the search's first answer is as
right, the special code that makes it may go.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from expected.frozen import Case, notebooks
from sessions import in_new_process, run_in_session, run_plainly

_MOST = 3  #: rewrites that are judged
_BUDGET = 20  #: seconds, as users have


@dataclass(frozen=True)
class Found:
    """A notebook, and which of the first rewrites repair it: of the search, of the cause."""

    notebook: str
    cause: str
    kind: str
    search: tuple[bool, ...]
    titles: tuple[str, ...]
    outcomes: tuple[str, ...]
    seconds: float
    own: tuple[bool, ...] | None = None
    own_titles: tuple[str, ...] = ()


def found_in(case: Case, beside: bool, watched: bool = True) -> Found | None:
    """What the search finds where the notebook goes wrong; None where nothing is told."""
    start = time.monotonic()
    told = in_new_process(told_without_own, case.cells, _BUDGET if watched else 0)
    took = time.monotonic() - start
    if told is None:
        return None
    right, titles = _judged(case, told)
    outcomes = tuple(rewrite["outcome"] for rewrite in told["rewrites"][:_MOST])
    own, own_titles = None, ()
    if beside:
        reports = run_in_session(case.cells, watched=watched).reports
        own, own_titles = _judged(case, reports[-1].told) if reports else ((), ())
    seconds = round(took, 1)
    name = str(case)
    cause, kind = told["id"], told["kind"]
    return Found(name, cause, kind, right, titles, outcomes, seconds, own, own_titles)


def told_without_own(cells: tuple[str, ...], budget: float) -> dict[str, Any] | None:
    """The last report of a watched notebook whose causes propose nothing."""
    from notebook import kernel_shell

    import autograd_explain
    from autograd_explain import pipeline

    pipeline.propose = lambda *_: ()
    with kernel_shell() as shell:
        shell.run_line_magic("load_ext", "autograd_explain")
        if budget:
            shell.run_line_magic("autograd_check", f"on --budget {budget}")
        for cell in cells:
            if not shell.run_cell(cell, store_history=True).success:
                break
        last = autograd_explain.last()
        return None if last is None else last.to_dict()


def _judged(case: Case, told: dict[str, Any]) -> tuple[tuple[bool, ...], tuple[str, ...]]:
    """Which of the first rewrites give what the corrected notebook gives, and their titles."""
    program, expressions = case.intended
    wanted = run_plainly(program, expressions)
    right = []
    for rewrite in told["rewrites"][:_MOST]:
        new = {edit["cell"]: edit["new_source"] for edit in rewrite["edits"]}
        cells = tuple((dict(enumerate(case.cells, 1)) | new).values())
        right.append(run_plainly(cells, expressions).agrees(wanted))
    return tuple(right), tuple(rewrite["title"] for rewrite in told["rewrites"][:_MOST])


def line_of(found: Found) -> str:
    marks = "".join("x" if right else "." for right in found.search) or "-"
    own = "" if found.own is None else "".join("x" if right else "." for right in found.own) or "-"
    told = f"{found.notebook:62} {found.kind:8} {marks:4}{own:4} {found.seconds:5} {found.cause}"
    return "\n      ".join((told, *map(" ".join, zip(found.outcomes, found.titles, strict=True))))


def totals(rows: list[Found]) -> str:
    lines = []
    kinds = Counter(row.kind for row in rows)
    for kind, count in kinds.items():
        own = [row for row in rows if row.kind == kind]
        first = sum(row.search[:1] == (True,) for row in own)
        false = sum(
            outcome == "verified" and not right
            for row in own
            for outcome, right in zip(row.outcomes[:1], row.search, strict=False)
        )
        three = sum(any(row.search) for row in own)
        beside = sum((row.own or ())[:1] == (True,) for row in own)
        lines.append(
            f"{kind}: {count}, first {first}, among three {three}, "
            f"falsely verified {false}, with the causes' own first {beside}"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="", help="notebooks whose name fits this")
    parser.add_argument("--part", type=int, default=1, help="every n-th notebook only")
    parser.add_argument("--beside", action="store_true")
    parser.add_argument("--hook", action="store_true")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rows = []
    field = [c for c in notebooks() if c.family not in ("causes", "injected")]
    for case in [c for c in field if re.search(given.only, str(c))][:: given.part]:
        found = found_in(case, given.beside, not given.hook)
        print(f"{case}: nothing told" if found is None else line_of(found), flush=True)
        rows += [found] if found is not None else []
        if given.json:
            given.json.write_text(json.dumps([asdict(row) for row in rows]))
    print(totals(rows))


if __name__ == "__main__":
    main()
