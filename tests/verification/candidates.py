"""Candidates for `verify`, made from the field cases: none that is wrong may come out "verified".

Of each case that its correction changes in one cell: that correction (right), variants of it
(wrong, unless they happen to give the same values), and texts that fail, do not compile, or write a
file.
Each is tried in the notebook and in the script that the cells are, and in that script by one of
the ranks of a job.  What is right is decided without us: the program with the candidate in it runs,
and its values are compared with the correction's.

usage: candidates.py [--number N] [--place notebook|script|rank] [--only CASE] [--part I/N]
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import os
import random
import signal
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).parents[1]))

from expected.frozen import FIELD, Case
from notebook import PATIENCE, without_time_limits
from sessions import in_new_process, run_plainly

PLACES = ("notebook", "script", "rank")
WRITES = "\nwith open('written.txt', 'w') as written:\n    written.write('x')"


@dataclass(frozen=True)
class Candidate:
    """A text for one cell of a case, `index` counted from 0, and how it was made."""

    case: Case
    index: int
    kind: str
    text: str

    @property
    def cells(self) -> tuple[str, ...]:
        """The notebook with it."""
        cells = [*self.case.cells]
        cells[self.index] = self.text
        return tuple(cells)


@dataclass(frozen=True)
class Judged:
    """What was said of a candidate, and whether its program gives what was meant (None where that
    was not asked, as nothing was claimed)."""

    candidate: Candidate
    place: str
    outcome: str
    right: bool | None

    @property
    def false(self) -> bool:
        return self.outcome == "verified" and self.right is False


def candidates() -> Iterator[Candidate]:
    """Four of each case, the cases in an order that mixes what they are about."""
    found = [Case(path.parents[1].name, path.parent.name) for path in FIELD.glob("*/*/case.py")]
    for number, case in enumerate(sorted(found, key=lambda case: zlib.crc32(case.name.encode()))):
        changed = [
            n for n, (a, b) in enumerate(zip(case.cells, case.intended[0], strict=False)) if a != b
        ]
        if len(changed) == 1 and len(case.cells) == len(case.intended[0]):
            yield from _of(case, changed[0], number)


def _of(case: Case, index: int, number: int) -> Iterator[Candidate]:
    right = case.intended[0][index]
    yield Candidate(case, index, "right", right)
    kinds = [*_WRONG]
    random.Random(number).shuffle(kinds)
    made = (Candidate(case, index, kind, text) for kind in kinds if (text := _wrong(right, kind)))
    yield from islice((c for c in made if c.text not in (right, case.cells[index])), 2)
    name, text = (
        ("failing", f"{right}\nraise ValueError('wrong')"),
        ("syntax", f"{right}\n("),
        ("writing", right + WRITES),
        ("as it is", case.cells[index]),
    )[number % 4]
    yield Candidate(case, index, name, text)


# -- wrong ones -------------------------------------------------------------------------


def _wrong(right: str, kind: str) -> str:
    """The text with one place changed, "" where it has none for this."""
    tree = ast.parse(right)
    sites = [*_WRONG[kind](tree)]
    if not sites:
        return ""
    random.Random(zlib.crc32(right.encode())).choice(sites)()
    return ast.unparse(ast.fix_missing_locations(tree))


Sites = Iterator[Callable[[], object]]


def _computed(tree: ast.Module) -> Iterator[ast.Assign]:
    """Statements that keep what was computed."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, (ast.BinOp, ast.Call)):
            yield node


def _detached(tree: ast.Module) -> Sites:
    def detach(node: ast.Assign) -> None:
        node.value = ast.Call(ast.Attribute(node.value, "detach", ast.Load()), [], [])

    for node in _computed(tree):
        yield lambda node=node: detach(node)


def _without_grad(tree: ast.Module) -> Sites:
    block = ast.parse("with torch.no_grad():\n    pass").body[0]
    assert isinstance(block, ast.With)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for place, statement in enumerate(body if isinstance(body, list) else ()):
            if isinstance(statement, ast.Assign) and not isinstance(statement.value, ast.Constant):
                made = ast.With(block.items, [statement])
                yield lambda body=body, place=place, made=made: body.__setitem__(place, made)


def _other_value(tree: ast.Module) -> Sites:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, float):
            yield lambda node=node: setattr(node, "value", node.value * 1.5 + 0.01)


def _dropped(tree: ast.Module) -> Sites:
    for node in ast.walk(tree):
        for name, child in ast.iter_fields(node):
            if isinstance(child, ast.BinOp) and isinstance(child.op, (ast.Add, ast.Sub, ast.Mult)):
                yield lambda node=node, name=name, child=child: setattr(node, name, child.left)


def _other_sign(tree: ast.Module) -> Sites:
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
            other = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()
            yield lambda node=node, other=other: setattr(node, "op", other)


_WRONG: dict[str, Callable[[ast.Module], Sites]] = {
    "detached": _detached,
    "without grad": _without_grad,
    "other value": _other_value,
    "dropped term": _dropped,
    "other sign": _other_sign,
}
#: All that `candidates` makes.
KINDS = ("right", *_WRONG, "failing", "syntax", "writing", "as it is")


# -- judged -----------------------------------------------------------------------------


def judge(candidate: Candidate, place: str) -> Judged:
    """Try a candidate; where it is said to be verified, find out whether it is right."""
    outcome = in_new_process(_TRY[place], candidate, seconds=PATIENCE)
    right = None
    if outcome == "verified":
        intended, expressions = candidate.case.intended
        found = run_plainly(candidate.cells, expressions)
        right = found.agrees(run_plainly(intended, expressions))
    return Judged(candidate, place, outcome, right)


def _in_notebook(candidate: Candidate) -> str:
    from notebook import shell_with_extension

    import autograd_explain

    sink = io.StringIO()
    with shell_with_extension() as shell:
        with contextlib.redirect_stdout(sink), contextlib.redirect_stderr(sink):
            for cell in candidate.case.cells:
                if not shell.run_cell(cell, store_history=True).success:
                    break
        ran = shell.execution_count - 1
        if ran <= candidate.index:
            return "not run"
        cell = candidate.index + 1
        return autograd_explain.verify(candidate.text, cell=cell, budget=PATIENCE).outcome


def _in_script(candidate: Candidate) -> str:
    import autograd_explain

    file = Path("train.py")
    file.write_text("\n".join(candidate.case.cells), "utf-8")
    proposed = "\n".join(candidate.cells)
    with without_time_limits():
        return autograd_explain.verify(proposed, file=str(file), budget=PATIENCE).outcome


def _in_rank(candidate: Candidate) -> str:
    """One of the two processes of a job, while its group lives."""
    partner = os.fork()
    if not partner:
        _join_group(1)
        signal.pause()
    try:
        with mock.patch.dict(os.environ, {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "2"}):
            _join_group(0)
            return _in_script(candidate)
    finally:
        os.kill(partner, signal.SIGKILL)
        os.waitpid(partner, 0)


def _join_group(rank: int) -> None:
    import torch
    import torch.distributed as dist

    meeting = f"file://{Path('meeting').absolute()}"
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=2)
    dist.all_reduce(torch.ones(1))


_TRY = {"notebook": _in_notebook, "script": _in_script, "rank": _in_rank}


def judged(number: int, places: tuple[str, ...], only: str, part: str) -> Iterator[Judged]:
    first, count = map(int, part.split("/"))
    chosen = [*islice((c for c in candidates() if only in c.case.name), number)]
    for candidate in chosen[first - 1 :: count]:
        for place in places:
            yield judge(candidate, place)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--number", type=int, default=100)
    parser.add_argument("--place", choices=PLACES)
    parser.add_argument("--only", default="")
    parser.add_argument("--part", default="1/1")
    given = parser.parse_args()
    counts: Counter[tuple[str, str, str]] = Counter()
    for row in judged(
        given.number, (given.place,) if given.place else PLACES, given.only, given.part
    ):
        said = "VERIFIED, BUT WRONG" if row.false else row.outcome
        counts[row.place, row.candidate.kind, said] += 1
        print(f"{row.candidate.case} {row.candidate.kind}, {row.place}: {said}", flush=True)
    for key, count in sorted(counts.items()):
        print(*key, count, sep="\t")
    false = sum(count for (*_, said), count in counts.items() if said.startswith("VERIFIED"))
    print(f"{sum(counts.values())} judged, {false} falsely verified")


if __name__ == "__main__":
    main()
