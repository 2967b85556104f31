"""What is found, for other programs: SARIF 2.1.0 and GitHub's workflow commands."""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ..model import lines_of

FORMATS = ("text", "json", "sarif", "github")
_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {"error": "error", "warning": "warning", "silent": "warning", "note": "note"}
_COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}
#: Which of a report's lines a result stands at, the best first.
_BLAMED = ("changed", "cause", "detached", "freed", "failed")
_WORTH = ("verified", "runs", "not_tried")

Place = Mapping[str, Any]


@dataclass(frozen=True)
class Result:
    """A finding without a screen.

    `place` and those of `related` are places of the report; `fixes` are rewrites of the report.
    """

    rule: str
    level: str
    title: str
    text: str
    place: Place | None = None
    related: tuple[tuple[str, Place], ...] = ()
    fixes: tuple[Mapping[str, Any], ...] = ()
    ranks: tuple[int, ...] = ()


def of_report(report: Mapping[str, Any], ranks: Sequence[int] = ()) -> Result:
    """The result that a report is."""
    events = sorted(
        (e for e in report["events"] if e["place"] is not None and e["what"] in _BLAMED),
        key=lambda event: _BLAMED.index(event["what"]),
    )
    place = events[0]["place"] if events else None
    others = ((e["what"], e["place"]) for e in report["events"] if e["place"] not in (None, place))
    own = () if report.get("rank") is None else (report["rank"],)
    return Result(
        rule=report["id"],
        level=_LEVELS[report["kind"]],
        title=report["headline"],
        text=report["explanation"],
        place=place,
        related=tuple(others),
        fixes=tuple(r for r in report["rewrites"] if r["outcome"] in _WORTH),
        ranks=tuple(ranks) or own,
    )


def written(results: Iterable[Result], format: str) -> str:
    """The results in one of `FORMATS` other than text and JSON."""
    return "\n".join(_commands(results)) if format == "github" else _sarif([*results])


def _commands(results: Iterable[Result]) -> Iterator[str]:
    """One workflow command each: https://docs.github.com/actions/reference/workflow-commands."""
    for result in results:
        values = {"title": f"autograd_explain: {result.rule}"}
        if result.place is not None and result.place.get("file"):
            span = result.place.get("span") or {}
            values |= {"file": _relative(result.place["file"]), "line": str(result.place["line"])}
            values |= {"endLine": str(span["end_line"])} if span else {}
        who = f" (rank {', '.join(map(str, result.ranks))})" if result.ranks else ""
        diffs = [e["diff"] for fix in result.fixes[:1] for e in fix["edits"]]
        told = "\n\n".join(part for part in (f"{result.title}{who}", result.text, *diffs) if part)
        given = ",".join(f"{name}={_escaped(value, ':,')}" for name, value in values.items())
        yield f"::{_COMMANDS[result.level]} {given}::{_escaped(told)}"


def _escaped(text: str, more: str = "") -> str:
    return "".join(f"%{ord(c):02X}" if c in f"%\r\n{more}" else c for c in text)


def _relative(file: str) -> str:
    """As the workflow's checkout has it, where it is in there."""
    path, here = Path(file), Path.cwd()
    return path.relative_to(here).as_posix() if path.is_relative_to(here) else path.as_posix()


def _sarif(results: Sequence[Result]) -> str:
    from .. import __version__

    rules = list(dict.fromkeys(result.rule for result in results))
    driver = {
        "name": "autograd_explain",
        "version": __version__,
        "rules": [{"id": rule, "shortDescription": {"text": rule}} for rule in rules],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(result, rules.index(result.rule)) for result in results],
    }
    return json.dumps({"$schema": _SARIF, "version": "2.1.0", "runs": [run]}, indent=1)


def _result(result: Result, rule: int) -> dict[str, Any]:
    plain = "\n\n".join(part for part in (result.title, result.text) if part)
    made: dict[str, Any] = {
        "ruleId": result.rule,
        "ruleIndex": rule,
        "level": result.level,
        "message": {"text": result.title, "markdown": plain},
    }
    if result.place is not None:
        made["locations"] = [_location(result.place)]
    if result.related:
        made["relatedLocations"] = [
            {"id": number, "message": {"text": text}, **_location(place)}
            for number, (text, place) in enumerate(result.related)
        ]
    fixes = [fix for fix in map(_fix, result.fixes) if fix["artifactChanges"]]
    if fixes:
        made["fixes"] = fixes
    if result.ranks:
        made["properties"] = {"ranks": list(result.ranks)}
    return made


def _location(place: Place) -> dict[str, Any]:
    """A file's region; a notebook's cell has only a name."""
    if not place.get("file"):
        return {"logicalLocations": [{"name": f"In[{place.get('cell')}]", "kind": "cell"}]}
    region = {"startLine": place["line"]}
    span = place.get("span")
    if span is not None:
        region = {
            **{"startLine": span["line"], "startColumn": span["column"] + 1},
            **{"endLine": span["end_line"], "endColumn": span["end_column"] + 1},
        }
    return {"physicalLocation": {"artifactLocation": _artifact(place["file"]), "region": region}}


def _artifact(file: str) -> dict[str, str]:
    name = _relative(file)
    return {"uri": Path(file).as_uri() if os.path.isabs(name) else quote(name)}


def _fix(rewrite: Mapping[str, Any]) -> dict[str, Any]:
    changes = [
        {
            "artifactLocation": _artifact(edit["file"]),
            "replacements": list(_replacements(edit["old_source"], edit["new_source"])),
        }
        for edit in rewrite["edits"]
        if edit["file"] and "new_source" in edit
    ]
    text = f"{rewrite['title']} ({rewrite['outcome'].replace('_', ' ')})"
    return {"description": {"text": text}, "artifactChanges": changes}


def _replacements(old: str, new: str) -> Iterator[dict[str, Any]]:
    """Whole lines: from the beginning of the first to that of the line after the last."""
    before, after = lines_of(old, keepends=True), lines_of(new, keepends=True)
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for tag, start, end, first, last in matcher.get_opcodes():
        if tag != "equal":
            region = {"startLine": start + 1, "startColumn": 1, "endLine": end + 1, "endColumn": 1}
            if (
                end and end == len(before) and not before[-1].endswith("\n")
            ):  # there is no next line
                region |= {"endLine": end, "endColumn": len(before[-1]) + 1}
            text = "".join(after[first:last])
            yield {"deletedRegion": region, "insertedContent": {"text": text}}
