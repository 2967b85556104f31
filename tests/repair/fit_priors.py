"""Count how often each operator's edit repairs a field notebook or an injected bug, and write the
table of priors.

    python tests/repair/fit_priors.py --rows rows.json          # tries them, some 5 s a notebook
    python tests/repair/fit_priors.py --rows rows.json --held   # how it ranks what is held out

An edit is right where the edited notebook gives what the corrected one gives. The rows are kept, so
that counting again costs nothing; notebooks that are in them already are not tried again.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from expected.frozen import FIELD, Case, notebooks
from field.forked import batch_of
from sessions import in_new_process, run_plainly

from autograd_explain.repair.priors import TABLE, UNMET

_MOST_TRIED = 80  #: edits of a notebook, the likeliest by the table there is
_MOST_OF_INJECTED = 30
_TOWARDS_ALL = 10  #: edits that an operator's share over all programs counts as
_TOWARDS_OPERATOR = 30  #: the same for its share where torch complained of something else
_SHOWN = (0.05, 0.1, 0.15, 0.2, 0.3)


@dataclass(frozen=True)
class Row:
    """An edit of a notebook that was tried."""

    notebook: str
    family: str  #: what goes wrong
    batch: str  #: what was written together
    reference: str
    operator: str
    near: float
    right: bool


Table = Mapping[str, Mapping[str, float]]


def tried(case: Case) -> Iterator[Row]:
    """The first edits of a notebook, run."""
    intended = run_plainly(*case.intended)
    if case.family == "injected":  # many are alike, and many edits repair each
        family, batch, most = f"injected {case.injected.kind}", "injected", _MOST_OF_INJECTED
    else:
        family, batch, most = case.family, batch_of(FIELD / str(case)), _MOST_TRIED
    for reference, operator, near, new in in_new_process(edits_of, case.cells)[:most]:
        cells = tuple((dict(enumerate(case.cells, 1)) | new).values())
        right = run_plainly(cells, case.intended[1]).agrees(intended)
        yield Row(str(case), family, batch, reference, operator, near, right)


def edits_of(cells: tuple[str, ...]) -> list[tuple[str, str, float, dict[int, str]]]:
    """What the search would try where the notebook fails: the reference, the operator, how near it
    is, and the new cells."""
    from notebook import kernel_shell

    from autograd_explain import pipeline

    found: list[tuple[str, str, float, dict[int, str]]] = []

    def propose(finding: Any, incident: Any, causes: Any) -> tuple[()]:
        found[:] = _candidates(finding, incident)
        return ()

    pipeline.propose = propose
    with kernel_shell() as shell:
        shell.run_line_magic("load_ext", "autograd_explain")
        for cell in cells:
            if not shell.run_cell(cell, store_history=True).success:
                break
    return found


def _candidates(finding: Any, incident: Any) -> list[tuple[str, str, float, dict[int, str]]]:
    from autograd_explain.pipeline import request_for
    from autograd_explain.repair.candidates import candidates
    from autograd_explain.repair.priors import prior

    request = request_for(incident, finding)
    found = {}
    for candidate in candidates(finding, request):
        proposal = candidate.proposal()
        if proposal is not None and all(e.cell is not None for e in proposal.edits):
            new = {e.cell: e.new_source for e in proposal.edits}
            near = candidate.score / prior(candidate.operator, request.reference)
            row = request.reference.value, candidate.operator, near, new
            found.setdefault(repr(sorted(new.items())), row)
    return list(found.values())


def counted(rows: Iterable[Row]) -> Table:
    """The share of right edits: of each operator in each reference, drawn towards its share in
    all, and that towards the share of all operators."""
    rows = list(rows)
    edits, right = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for row in rows:
        for key in ((row.reference, row.operator), ("any", row.operator)):
            edits[key] += 1
            right[key] += row.right
    share = sum(row.right for row in rows) / max(1, len(rows))
    names = sorted({UNMET, *(row.operator for row in rows)})
    table: dict[str, dict[str, float]] = {"any": {}}
    for name in names:
        key = "any", name
        table["any"][name] = (right[key] + _TOWARDS_ALL * share) / (edits[key] + _TOWARDS_ALL)
    for reference, name in sorted(set(edits) - {("any", name) for name in names}):
        key, towards = (reference, name), _TOWARDS_OPERATOR * table["any"][name]
        found = (right[key] + towards) / (edits[key] + _TOWARDS_OPERATOR)
        table.setdefault(reference, {})[name] = found
    return {r: {n: round(p, 4) for n, p in found.items()} for r, found in table.items()}


def ranked(rows: Iterable[Row], table: Table) -> list[tuple[float, bool]]:
    """A notebook's edits in the order in which they would be tried, with their scores."""
    scored = (
        (row.near * table.get(row.reference, {}).get(row.operator, table["any"][row.operator]), row)
        for row in rows
    )
    ordered = sorted(scored, key=lambda pair: -pair[0])
    return [(score, row.right) for score, row in ordered]


def told(orders: list[list[tuple[float, bool]]]) -> str:
    """How early the right edits come, and how often the first is right at which score."""
    right = [[n for n, (_, right) in enumerate(order) if right] for order in orders]
    first = [found[0] for found in right if found]
    lines = [f"{len(orders)} notebooks, {len(first)} of them with a right edit"]
    lines += [f"among the first {n:2}: {sum(at < n for at in first)}" for n in (1, 3, 16, 48)]
    for least in _SHOWN:
        shown = [order[0][1] for order in orders if order and order[0][0] >= least]
        lines.append(f"the first has {least} or more: {len(shown)}, right {sum(shown)}")
    return "\n".join(lines)


def held_out(rows: list[Row], by: str) -> list[list[tuple[float, bool]]]:
    """Each notebook ranked by what was counted without those that share its `by`."""
    found = []
    for name in sorted({row.notebook for row in rows}):
        own = [row for row in rows if row.notebook == name]
        others = [row for row in rows if getattr(row, by) != getattr(own[0], by)]
        found.append(ranked(own, counted(others)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--part", type=int, default=1, help="every n-th notebook only")
    parser.add_argument("--injected", type=int, default=10, help="every n-th injected bug only")
    parser.add_argument("--held", action="store_true", help="only tell how it ranks")
    given = parser.parse_args()
    rows = [Row(**row) for row in json.loads(given.rows.read_text())] if given.rows.exists() else []
    if not given.held:
        known = {row.notebook for row in rows}
        field = [c for c in notebooks() if c.family not in ("causes", "injected")]
        bugs = [c for c in notebooks() if c.family == "injected" and not c.injected.silent]
        for case in (*field[:: given.part], *bugs[:: given.injected]):
            if str(case) not in known:
                rows += tried(case)
                given.rows.write_text(json.dumps([asdict(row) for row in rows]))
        TABLE.write_text(json.dumps(counted(rows), indent=1) + "\n", "utf-8")
    table = json.loads(TABLE.read_text("utf-8"))
    names = sorted({row.notebook for row in rows})
    own = [ranked([row for row in rows if row.notebook == name], table) for name in names]
    print("the table, on these notebooks:", told(own), sep="\n")
    for by in ("notebook", "batch", "family"):
        print(f"without the notebook's own {by}:", told(held_out(rows, by)), sep="\n")


if __name__ == "__main__":
    main()
