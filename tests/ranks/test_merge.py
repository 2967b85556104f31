"""What is told of many ranks, from records, logs and elastic's files written by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from render.samples import SAMPLES

import autograd_explain
from autograd_explain.cli import main
from autograd_explain.ranks.merge import merge
from autograd_explain.ranks.read import failures_in
from autograd_explain.search import scan_file

TRACEBACK = """\
Traceback (most recent call last):
  File "/job/train.py", line 25, in <module>
    main()
  File "/job/train.py", line 22, in main
    loss.backward()
  File "/env/lib/python3.12/site-packages/torch/_tensor.py", line 623, in backward
    torch.autograd.backward(
    ~~~~~~~~~~~~~~~~~~~~~~~^
"""
LEAF = "RuntimeError: a leaf Variable that requires grad is being used in an in-place operation.\n"
GONE = "RuntimeError: [/gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:1\n"


def prefixed(text: str, prefix: str) -> list[str]:
    return [f"{prefix}{line}" for line in text.splitlines(keepends=True)]


def interleaved(*columns: list[str]) -> str:
    width = max(map(len, columns))
    padded = [[*column, *[""] * (width - len(column))] for column in columns]
    return "".join(line for row in zip(*padded, strict=True) for line in row)


@pytest.fixture(autouse=True)
def _english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTOGRAD_EXPLAIN_LANG", "en")


@pytest.mark.parametrize("prefix", ["[rank{}]: ", "[default{}]:", "[default0]:[rank{}]: "])
def test_a_log_of_many_ranks_tells_who_and_where(tmp_path: Path, prefix: str) -> None:
    columns = [prefixed(TRACEBACK + LEAF, prefix.format(rank)) for rank in (1, 3)]
    log = tmp_path / "train.log"
    log.write_text("start\n" * 5000 + interleaved(*columns, prefixed(GONE, prefix.format(0))))
    report = scan_file(log)
    (found,) = report.found
    assert found.count == 2
    assert {(s.rank, s.frame.file, s.frame.line, s.frame.source) for s in found.sightings} == {
        (rank, "/job/train.py", 22, "loss.backward()") for rank in (1, 3)
    }
    assert list(report.consequences) == [0]


def test_a_warning_tells_its_line(tmp_path: Path) -> None:
    warning = (
        "/job/train.py:7: UserWarning: The .grad attribute of a Tensor that is not a leaf Tensor "
        "is being accessed. Its .grad attribute won't be populated during autograd.backward().\n"
    )
    log = tmp_path / "train.log"
    log.write_text(TRACEBACK.replace("22", "5") + "KeyError: 3\n" + warning)
    (found,) = scan_file(log).found
    assert (found.sightings[0].frame.file, found.sightings[0].frame.line) == ("/job/train.py", 7)


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    columns = [prefixed(TRACEBACK + LEAF, f"[rank{rank}]: ") for rank in (1, 3)]
    log = tmp_path / "train.log"
    log.write_text(interleaved(*columns, prefixed(GONE, "[rank0]: ")))
    assert main(["explain", str(log)]) == 0
    out = capsys.readouterr().out
    assert "ranks 1, 3 · /job/train.py:22 in main()  loss.backward()" in out
    assert "rank 0 failed in consequence: RuntimeError: [/gloo" in out


def elastic(folder: Path, rank: int, name: str, text: str) -> None:
    file = folder / "run_x" / "attempt_0" / str(rank) / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def error_file(message: str) -> str:
    extra = {"py_callstack": TRACEBACK + message, "timestamp": "1"}
    return json.dumps({"message": {"message": message.strip(), "extraInfo": extra}})


def record(rank: int, error: dict[str, Any] | None, *reports: dict[str, Any]) -> str:
    texts = [f"the report of rank {rank}"] * len(reports)
    return json.dumps(
        {"schema": 1, "rank": rank, "error": error, "reports": reports, "texts": texts}
    )


def test_elastics_own_files_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    elastic(tmp_path, 2, "error.json", error_file(LEAF))
    elastic(tmp_path, 2, "stderr.log", TRACEBACK + LEAF)  # the same again
    elastic(tmp_path, 0, "error.json", error_file(GONE))
    elastic(tmp_path, 1, "stderr.log", GONE)
    assert main(["explain", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "rank 2 · /job/train.py:22 in main()  loss.backward()"
    assert lines[-1].startswith("ranks 0, 1 failed in consequence: RuntimeError: [/gloo")
    assert sum("leaf Variable" in line for line in lines) == 1


PLACE = {"cell": None, "file": "/job/train.py", "line": 22, "source": "b()", "function": "main"}
ERROR = {"type": "RuntimeError", "message": LEAF[14:-1], "places": [PLACE]}
REPORT = {
    "schema": 1,
    "id": "leaf_written",
    "kind": "error",
    "message": LEAF[14:-1],
    "headline": "H",
    "explanation": "E",
    "events": [{"what": "failed", "place": PLACE}],
    "rewrites": [],
}


def test_a_rank_that_was_ended_early_joins_those_with_a_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    elastic(tmp_path, 0, "autograd_explain.json", record(0, ERROR))
    elastic(tmp_path, 1, "autograd_explain.json", record(1, ERROR, REPORT))
    elastic(tmp_path, 1, "stderr.log", TRACEBACK + LEAF)
    other = {"type": "KeyError", "message": "'x'", "places": [PLACE]}
    elastic(tmp_path, 2, "autograd_explain.json", record(2, other))
    merged = merge(failures_in(tmp_path))
    assert [(g.ranks, g.best.cause) for g in merged.causes] == [
        ((0, 1), "leaf_written"),
        ((2,), ""),
    ]
    assert main(["explain", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "the report of rank 1" in out and "KeyError: 'x'" in out
    assert "This is none of autograd's errors." in out


def test_of_several_runs_the_newest_is_told(tmp_path: Path) -> None:
    import os

    elastic(tmp_path, 0, "stderr.log", TRACEBACK + LEAF)
    old = tmp_path / "run_x"
    old.rename(tmp_path / "run_old")
    for path in (tmp_path / "run_old").rglob("*"):
        os.utime(path, (1, 1))
    elastic(tmp_path, 1, "stderr.log", TRACEBACK + LEAF)
    assert [g.ranks for g in merge(failures_in(tmp_path)).causes] == [(1,)]


def test_a_folder_without_anything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run.json").write_text('{"schema": 1}')
    (tmp_path / "other.json").write_text("[1]")
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "fine.log").write_text("fine\n")
    assert main(["explain", str(tmp_path)]) == 1
    assert "No autograd message and no report" in capsys.readouterr().err


def test_reports_at_hand_become_one_account() -> None:
    """As ipyparallel pulls them from its engines."""
    import pickle

    first, other = SAMPLES["overwritten"](), SAMPLES["leaf_written"]()
    pulled = pickle.loads(pickle.dumps([first, None, first, other]))
    account = autograd_explain.merge(pulled)
    assert [(t.ranks, t.report.id) for t in account.told] == [
        ((0, 2), "saved_value_overwritten"),
        ((3,), other.id),
    ]
    text = account.to_text()
    assert text.startswith("ranks 0, 2\n── autograd_explain · saved_value_overwritten")
    assert "\nrank 3\n" in text and "ランク 0, 2" in account.in_language("ja").to_markdown()
    assert account.to_html().count("<p>rank") == 2
    assert json.loads(json.dumps(account.to_dict()))["causes"][1]["ranks"] == [3]
    assert autograd_explain.merge([None, None]).told == ()
