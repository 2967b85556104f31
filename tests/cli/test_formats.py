"""What is told to other programs: SARIF and GitHub's workflow commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from autograd_explain.cli import main
from autograd_explain.cli.formats import Result, of_report, written

#: SARIF 2.1.0, sections 3.13 to 3.58: of each object that is written, what it must and may have.
TEXT = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}}
ONE = {"type": "integer", "minimum": 1}


def _object(required: str, **properties: Any) -> dict[str, Any]:
    return {
        **{"type": "object", "required": required.split(), "properties": properties},
        "additionalProperties": False,
    }


def _array(items: Any, minimum: int = 0) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": minimum, "uniqueItems": True}


REGION = _object("startLine", startLine=ONE, startColumn=ONE, endLine=ONE, endColumn=ONE)
#: A URI reference (RFC 3986): whatever else is in a path is escaped.
ARTIFACT = _object(
    "uri", uri={"type": "string", "pattern": r"^(file://)?([\w.~/:@!$&'()*+,;=-]|%[0-9A-F]{2})+$"}
)
PHYSICAL = _object("artifactLocation", artifactLocation=ARTIFACT, region=REGION)
LOCATION = _object(
    "",
    id={"type": "integer", "minimum": 0},
    message=TEXT,
    physicalLocation=PHYSICAL,
    logicalLocations=_array(_object("", name={"type": "string"}, kind={"type": "string"})),
)
REPLACEMENT = _object("deletedRegion", deletedRegion=REGION, insertedContent=TEXT)
CHANGE = _object(
    "artifactLocation replacements", artifactLocation=ARTIFACT, replacements=_array(REPLACEMENT, 1)
)
RESULT = _object(
    "message",
    ruleId={"type": "string"},
    ruleIndex={"type": "integer", "minimum": 0},
    level={"enum": ["none", "note", "warning", "error"]},
    message=TEXT,
    locations=_array(LOCATION),
    relatedLocations=_array(LOCATION),
    fixes=_array(_object("artifactChanges", description=TEXT, artifactChanges=_array(CHANGE, 1))),
    properties={"type": "object"},
)
RULE = _object("id", id={"type": "string"}, shortDescription=TEXT)
DRIVER = _object("name", name={"type": "string"}, version={"type": "string"}, rules=_array(RULE))
RUN = _object(
    "tool",
    tool=_object("driver", driver=DRIVER),
    columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
    results=_array(RESULT),
)
LOG = _object(
    "version runs",
    **{"$schema": {"type": "string"}, "version": {"const": "2.1.0"}, "runs": _array(RUN)},
)

PLACE = {
    **{"cell": None, "line": 2, "source": "b: 100%", "function": None, "changed": False},
    "span": {"line": 2, "column": 0, "end_line": 3, "end_column": 4},
}


def report(file: str, cell: int | None = None, **changes: Any) -> dict[str, Any]:
    place = {**PLACE, "file": file or None, "cell": cell}
    other = {**place, "line": 9, "span": None}
    edit = {"file": file or None, "cell": cell, "old_source": "a\nb\nc\n", "diff": "-b\n+B\n+B2"}
    return {
        **{"id": "saved_value_overwritten", "kind": "error", "rank": None, "headline": "H, 1: 5%"},
        "explanation": "Why.\nBecause.",
        "events": [{"what": "failed", "place": other}, {"what": "changed", "place": place}],
        "rewrites": [
            {
                "title": "T",
                "outcome": "verified",
                "edits": [{**edit, "new_source": "a\nB\nB2\nc\n"}],
            }
        ],
        **changes,
    }


def sarif(*results: Result) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(written(results, "sarif"))
    jsonschema.validate(found, LOG)
    (run,) = found["runs"]
    return run


def test_sarif_has_places_and_fixes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = sarif(of_report(report(str(tmp_path / "src" / "train.py")), (0, 2)))
    (result,) = run["results"]
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    where = result["locations"][0]["physicalLocation"]
    assert where["artifactLocation"] == {"uri": "src/train.py"}
    assert where["region"] == {"startLine": 2, "startColumn": 1, "endLine": 3, "endColumn": 5}
    (related,) = result["relatedLocations"]
    assert related["physicalLocation"]["region"] == {"startLine": 9}
    (change,) = result["fixes"][0]["artifactChanges"]
    (replaced,) = change["replacements"]
    assert replaced == {
        "deletedRegion": {"startLine": 2, "startColumn": 1, "endLine": 3, "endColumn": 1},
        "insertedContent": {"text": "B\nB2\n"},
    }
    assert result["properties"] == {"ranks": [0, 2]}


def test_a_cell_has_a_name_and_no_fix() -> None:
    (result,) = sarif(of_report(report("", 3)))["results"]
    assert result["locations"] == [{"logicalLocations": [{"name": "In[3]", "kind": "cell"}]}]
    assert "fixes" not in result


def test_a_workflow_command_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    line = written([of_report(report(str(tmp_path / "a,b.py"), rank=3))], "github")
    assert line == (
        "::error title=autograd_explain%3A saved_value_overwritten,file=a%2Cb.py,line=2,endLine=3::"
        "H, 1: 5%25 (rank 3)%0A%0AWhy.%0ABecause.%0A%0A-b%0A+B%0A+B2"
    )


def test_a_path_is_a_uri_and_a_fix_ends_with_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for file, uri in (("my code/a#1 é.py", "my%20code/a%231%20%C3%A9.py"), ("/x y.py", "")):
        given = report(str(tmp_path / file))
        given["rewrites"][0]["edits"][0] |= {"old_source": "a\nb", "new_source": "a\nB"}
        (result,) = sarif(of_report(given))["results"]
        (change,) = result["fixes"][0]["artifactChanges"]
        assert change["artifactLocation"]["uri"] == (uri or "file:///x%20y.py")
        deleted = change["replacements"][0]["deletedRegion"]
        assert (deleted["endLine"], deleted["endColumn"]) == (2, 2)


def test_a_workflow_command_is_read_as_it_was_meant() -> None:
    """By what a runner does: it undoes these escapes, of a value two more than of the text."""
    hostile = "a:b,c%3A\r\n::error file=x::y %25"
    line = written([Result(hostile, "error", hostile, "", {"file": hostile, "line": 1})], "github")
    assert len(line.splitlines()) == 1
    head, text = line.removeprefix("::error ").split("::", 1)
    values = dict(part.split("=", 1) for part in head.split(","))
    for escape, char in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        values = {name: value.replace(escape, char) for name, value in values.items()}
        text = text if char in ":," else text.replace(escape, char)
    assert values == {"title": f"autograd_explain: {hostile}", "file": hostile, "line": "1"}
    assert text == hostile


LEAF = "RuntimeError: a leaf Variable that requires grad is being used in an in-place operation."


def test_explain_in_each_format(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUTOGRAD_EXPLAIN_LANG", "en")
    log = tmp_path / "train.log"
    log.write_text(
        'Traceback (most recent call last):\n  File "/job/train.py", line 7, in f\n'
        f"    w += 1\n{LEAF}\n"
    )
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "0.log").write_text(log.read_text())
    for what in (LEAF, str(log), str(tmp_path / "folder")):
        assert main(["explain", "--output-format", "github", what]) == 0
        line = capsys.readouterr().out
        assert line.startswith("::error title=autograd_explain%3A leaf_written")
        assert ("file=/job/train.py,line=7" in line) is (what != LEAF)
        assert main(["explain", "--output-format", "sarif", what]) == 0
        (result,) = json.loads(capsys.readouterr().out)["runs"][0]["results"]
        assert result["ruleId"] == "leaf_written"
        assert main(["explain", "--output-format", "json", what]) == 0
        data = json.loads(capsys.readouterr().out)
        assert main(["explain", "--json", what]) == 0
        assert json.loads(capsys.readouterr().out) == data
