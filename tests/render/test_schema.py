"""The published schema: every report fits it, and it describes every field."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import nbformat
import pytest

from autograd_explain.docs.player import play
from autograd_explain.render import Explanation
from autograd_explain.render.report import MIMETYPE, SCHEMA_FILE
from autograd_explain.render.topic_content import cells_of
from autograd_explain.search.causes import causes

from .samples import SAMPLES

SCHEMA = json.loads(SCHEMA_FILE.read_text("utf-8"))
CASES = ("saved_value_overwritten", "graph_cut", "leaf_written", "silent_overwrite")


def closed(schema: Any) -> Any:
    """The schema that allows no field it does not describe."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {key: closed(value) for key, value in schema.items()}
    return {"additionalProperties": False, **inner} if "properties" in schema else inner


def optional(schema: Any) -> Any:
    """The schema that misses no field."""
    if isinstance(schema, list):
        return [optional(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {k: optional(v) for k, v in schema.items() if k != "required"}


VALIDATOR = jsonschema.Draft202012Validator(closed(SCHEMA))


def keys(value: Any) -> Iterator[str]:
    """Of every object in a report."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    yield from value if isinstance(value, dict) else ()
    yield from (key for item in inner for key in keys(item))


def record_validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator({**closed(SCHEMA), "$ref": "#/$defs/rank_record"})


def as_json(value: Any) -> Any:
    return json.loads(json.dumps(value))


def test_it_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert list(jsonschema.Draft202012Validator(SCHEMA).iter_errors({"schema": 1})) != []


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_fit(name: str) -> None:
    explanation = SAMPLES[name]()
    for language in ("en", "ja", "zh"):
        VALIDATOR.validate(as_json(explanation.in_language(language).to_dict()))
    brief = explanation._repr_mimebundle_()[MIMETYPE]
    jsonschema.Draft202012Validator(optional(closed(SCHEMA))).validate(as_json(brief))
    assert not {"diff", "new_source", "span"} & set(keys(as_json(brief)))


def examples() -> Iterator[tuple[str, Path]]:
    """A case of each family of causes: enough to meet every sort of event and rewrite."""
    for name, cause in causes().items():
        if (cause.folder / "case.py").exists() and name in CASES:
            yield name, cause.folder


def on_disk(explanation: Explanation) -> int:
    """Bytes that a report takes of a notebook's file."""
    bundle = explanation._repr_mimebundle_()
    sizes = []
    for outputs in ([], [nbformat.v4.new_output("display_data", bundle)]):
        cell = nbformat.v4.new_code_cell("loss.backward()", id="a", outputs=outputs)
        sizes.append(len(nbformat.writes(nbformat.v4.new_notebook(cells=[cell])).encode()))
    return sizes[1] - sizes[0]


@pytest.mark.one_in(2)
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("name", "folder"), [*examples()])
def test_reports_fit(name: str, folder: Path) -> None:
    diagnosis = play(cells_of((folder / "case.py").read_text("utf-8")))
    assert diagnosis is not None and diagnosis.finding.cause == name
    assert on_disk(Explanation(diagnosis)) < 9_500
    report = as_json(Explanation(diagnosis).to_dict())
    VALIDATOR.validate(report)
    record = {
        **{"schema": 1, "rank": 1, "local_rank": 1, "world_size": 4, "attempt": 0},
        **{"host": "h", "pid": 1, "error": None, "reports": [report], "texts": [""]},
    }
    record_validator().validate(record)
