"""What the extension says about each notebook, as a text that is read and compared.

A family of notebooks has a file for each mode, with a block for each notebook.
"""

from __future__ import annotations

import difflib
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from injection.case import Injected
from injection.generator import programs
from notebook import cells_of
from sessions import Ran, run_in_session

from autograd_explain.knowledge.entry import entries

HERE = Path(__file__).parent
FIELD = HERE.parent / "field"
#: How many injected programs of each sort are kept.
INJECTED = {"raised": 170, "silent": 30}
#: What rounding made, which differs between two runs.
_ERROR = re.compile(r"; largest relative error [^;)]*")
_HEAD = re.compile(r"^=== (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Case:
    """A notebook.  Its `name` stays; `family` names the file that holds what is expected."""

    family: str
    name: str

    def __str__(self) -> str:
        return f"{self.family}/{self.name}"

    @property
    def cells(self) -> tuple[str, ...]:
        if self.family == "injected":
            return self.injected.wrong
        return cells_of((self._folder / "case.py").read_text("utf-8"))

    @property
    def intended(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The program that was meant, and expressions whose values a right repair gives too."""
        if self.family == "injected":
            return self.injected.right, self.injected.grads
        fixed = cells_of((self._folder / "fixed.py").read_text("utf-8"))
        import tomllib

        truth = tomllib.loads((self._folder / "truth.toml").read_text("utf-8"))
        return fixed, tuple(truth["fix"]["check"])

    @property
    def injected(self) -> Injected:
        sort, _, number = self.name.partition("-")
        return _injected(sort)[int(number)]

    @property
    def _folder(self) -> Path:
        return entries()[self.name].folder if self.family == "causes" else FIELD / str(self)


#: Compare a notebook under a mode ("hook", "check") with its block, or renew that.
Compare = Callable[[Case, str], None]


def notebooks() -> list[Case]:
    """All of them: the field's, each cause's own, and programs with an injected bug."""
    field = [Case(p.parents[1].name, p.parent.name) for p in FIELD.glob("*/*/case.py")]
    causes = [Case("causes", e.name) for e in entries().values() if _has_case(e.folder)]
    injected = [
        Case("injected", f"{sort}-{number:03}")
        for sort, count in INJECTED.items()
        for number in range(count)
    ]
    return sorted((*field, *causes, *injected), key=str)


def in_every_run(notebook: Case) -> bool:
    """Whether it is in the sixth that is run under check each time: always the same ones."""
    return zlib.crc32(notebook.name.encode()) % 12 in (0, 3)


def _has_case(folder: Path) -> bool:
    return (folder / "case.py").exists()


@cache
def _injected(sort: str) -> list[Injected]:
    found = programs(0, ("data",)) if sort == "silent" else programs(0)
    return list(islice(found, INJECTED[sort]))


# -- the text ---------------------------------------------------------------------------


@cache
def ran(notebook: Case, mode: str) -> Ran:
    return run_in_session(notebook.cells, watched=mode == "check")


def block(notebook: Case, mode: str) -> str:
    """What is kept of a notebook, without its heading."""
    return "".join(f"{line}\n" for line in lines_of(ran(notebook, mode)))


def lines_of(ran: Ran) -> Iterator[str]:
    if not ran.reports:
        yield "nothing"
    for report in ran.reports:
        told = report.told
        yield f"In[{report.cell}] {told['kind']} {told['id']}"
        yield from (f"  {t['role']:9} {', '.join(t['names']) or '?'}" for t in told["tensors"])
        yield from (_event(event) for event in told["events"])
        for rewrite in told["rewrites"]:
            yield from _rewrite(rewrite)
    if ran.trouble:
        yield from ("internal error", *ran.trouble.splitlines())


def _event(event: Mapping[str, Any]) -> str:
    relation = f", {event['relation']}" if event["relation"] else ""
    how = f"({event['op'] or '?'}, {event['certainty']}{relation})"
    place = event["place"]
    where = f"{_home(place)}:{place['line']} {place['source']}" if place else "?"
    return f"  {event['what']:9} {where} {how}"


def _home(place: Mapping[str, Any]) -> str:
    """The cell, or the file without its folder, which is another each time."""
    return f"In[{place['cell']}]" if place["cell"] else Path(place["file"]).name


def _rewrite(rewrite: Mapping[str, Any]) -> Iterator[str]:
    reason = _ERROR.sub("", rewrite["outcome_reason"])
    because = f": {reason}" if reason else ""
    yield f"  rewrite   {rewrite['title']}"
    yield f"            {rewrite['safety']}, {rewrite['outcome']}{because}"
    for edit in rewrite["edits"]:
        old, new = edit["old_source"].splitlines(), edit["new_source"].splitlines()
        changes = [*difflib.unified_diff(old, new, n=0, lineterm="")][2:]
        yield from (f"    {line}".rstrip() for line in (_home(edit), *changes))


# -- the files --------------------------------------------------------------------------


def file_of(family: str, mode: str) -> Path:
    return HERE / mode / f"{family}.txt"


def blocks(path: Path) -> dict[str, str]:
    """The blocks of a file by notebook."""
    parts = _HEAD.split(path.read_text("utf-8"))[1:] if path.exists() else []
    names, texts = parts[::2], parts[1::2]
    return {name: text.strip("\n") + "\n" for name, text in zip(names, texts, strict=True)}


def write(path: Path, found: Mapping[str, str]) -> None:
    path.parent.mkdir(exist_ok=True)
    text = "\n".join(f"=== {name}\n{found[name]}" for name in sorted(found))
    path.write_text(text, "utf-8")
