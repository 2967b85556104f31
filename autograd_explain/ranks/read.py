"""What the processes of a job left in a folder, or in files: records, logs, elastic's errors."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..match import match_message
from ..search import scan_file
from ..search.logs import Found
from ..traceback_text import frames_in
from .failure import Failure, line_of, of_report

#: Of torch elastic's folders, below one for each run: attempt_0/2/stderr.log.
_ATTEMPT = re.compile(r"attempt_\d+\Z")
_LOGS = (".log", ".out", ".err", ".txt")
_EXCEPTION = re.compile(r"(?P<kind>[A-Za-z_][\w.]*(?:Error|Exception|Warning|Interrupt|Exit)): ")
_LONGEST = 64 << 20  #: bytes of a file that may be JSON


def failures_in(path: Path, extra: Mapping[str, str] = {}) -> list[Failure]:
    """The failures that a folder or a file tells of; raises OSError where it cannot be read."""
    if path.is_dir():
        return [f for file in _files(path) for f in _of_file(file, extra)]
    return list(_of_file(path, extra))


def is_ours(path: Path) -> bool:
    """Whether a file is a record or a report of ours, or an error of torch elastic's."""
    data = _json(path) if path.suffix == ".json" else None
    return data is not None and any(map(bool, (_of_record(data), _of_elastic(data))))


def _files(folder: Path) -> list[Path]:
    """Of several runs in one folder the newest."""
    runs = {p.parent for p in folder.rglob("attempt_*") if p.is_dir() and _ATTEMPT.match(p.name)}
    if runs:
        newest = max(runs, key=lambda run: max(p.stat().st_mtime for p in run.rglob("*")))
        others = runs - {newest}
    else:
        others = set()
    found = (p for p in sorted(folder.rglob("*")) if p.suffix in (*_LOGS, ".json") and p.is_file())
    return [p for p in found if not others.intersection(p.parents)]


def _of_file(path: Path, extra: Mapping[str, str]) -> Iterator[Failure]:
    rank = _rank_of(path)
    data = _json(path) if path.suffix == ".json" else None
    if data is not None:
        found: Iterable[Failure] = _of_record(data, extra) or _of_elastic(data, extra)
    elif path.suffix != ".json":
        report = scan_file(path, extra)
        late = (Failure(rank, text) for rank, text in report.consequences.items())
        found = (*(f for message in report.found for f in _of_log(message)), *late)
    else:
        found = ()
    for failure in found:
        known = rank if failure.rank is None else failure.rank
        yield replace(failure, rank=known, origin=str(path))


def _rank_of(path: Path) -> int | None:
    """By the name of its folder, which is the local rank."""
    inside = len(path.parts) > 2 and _ATTEMPT.match(path.parent.parent.name)
    return int(path.parent.name) if inside and path.parent.name.isdigit() else None


def _json(path: Path) -> dict[str, Any] | None:
    if path.stat().st_size > _LONGEST:
        return None
    try:
        found = json.loads(path.read_text("utf-8"))
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _of_record(data: Mapping[str, Any], extra: Mapping[str, str] = {}) -> list[Failure]:
    """A process's record; a report by itself is one of a process without a rank."""
    if data.get("schema") != 1:
        return []
    if "headline" in data:
        return [of_report(data, data.get("rank"))]
    rank, error = data.get("rank"), data.get("error")
    reports, texts = data.get("reports") or [], data.get("texts") or []
    found = [of_report(r, rank, t) for r, t in zip(reports, texts, strict=False)]
    if not isinstance(error, Mapping):
        return found
    places = tuple(error.get("places") or ())
    if any(f.kind == "error" for f in found):
        return [replace(f, places=places) if f.kind == "error" else f for f in found]
    return [*found, _raised(rank, str(error.get("type")), str(error.get("message")), places, extra)]


def _of_elastic(data: Mapping[str, Any], extra: Mapping[str, str] = {}) -> list[Failure]:
    """The error file that `torch.distributed.elastic.multiprocessing.errors.record` writes."""
    inner = data.get("message")
    if not isinstance(inner, Mapping) or not isinstance(inner.get("message"), str):
        return []
    about = inner.get("extraInfo")
    lines = str(about.get("py_callstack", "") if isinstance(about, Mapping) else "").split("\n")
    places = tuple(frame.place for frame in frames_in(lines) if frame.is_users)
    said = str(inner["message"])
    kind = _EXCEPTION.match(said)
    message = said[kind.end() :] if kind else said
    return [_raised(None, kind["kind"] if kind else "", message, places, extra)]


def _of_log(found: Found) -> Iterator[Failure]:
    for seen in found.sightings:
        places = () if seen.frame is None else (seen.frame.place,)
        yield Failure(
            rank=seen.rank,
            message=found.match.message,
            match=found.match,
            places=places,
            lines=tuple(map(line_of, places)),
        )


def _raised(
    rank: int | None,
    kind: str,
    message: str,
    places: tuple[Mapping[str, Any], ...],
    extra: Mapping[str, str],
) -> Failure:
    source = str(places[-1].get("source") or "") if places else ""
    match = match_message(message, extra, source=source)
    return Failure(rank, message, kind, match, "", places, tuple(map(line_of, places[-1:])))
