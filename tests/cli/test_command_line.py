"""The command line as a user meets it: output, JSON, languages, errors, exit codes."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from autograd_explain.__main__ import main
from autograd_explain.match.table import rows
from autograd_explain.search.causes import causes

LEAF = "a leaf Variable that requires grad is being used in an in-place operation."
NONLEAF = "ValueError: can't optimize a non-leaf Tensor"
LOG = f"start\nRuntimeError: {LEAF}\nRuntimeError: {LEAF}\n{NONLEAF}\n"


@pytest.fixture(autouse=True)
def _english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTOGRAD_EXPLAIN_LANG", "en")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    out, err = capsys.readouterr()
    return code, out, err


def run_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any]:
    code, out, err = run(capsys, *arguments)
    assert err == ""
    return code, json.loads(out)


class Stdin:
    def __init__(self, data: bytes) -> None:
        self.buffer = io.BytesIO(data)


def type_in(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", Stdin(data))


def test_explain_a_message(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "explain", "RuntimeError:", LEAF)
    assert code == 0 and err == ""
    assert "leaf_written" in out and "a leaf Variable that requires grad" in out


@pytest.mark.parametrize("language", ["ja", "zh"])
def test_explain_in_a_language(capsys: pytest.CaptureFixture[str], language: str) -> None:
    code, out, _ = run(capsys, "explain", "--lang", language, "leaf_written")
    assert code == 0 and causes()["leaf_written"].document(language).title in out


def test_the_environment_chooses_the_language(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUTOGRAD_EXPLAIN_LANG", "zh")
    assert run_json(capsys, "explain", "--json", LEAF)[1]["language"] == "zh"


def test_json_of_a_message(capsys: pytest.CaptureFixture[str]) -> None:
    code, data = run_json(capsys, "explain", "--json", LEAF)
    assert code == 0
    assert data["id"] == "leaf_written" and data["message"]["id"] == "leaf-inplace"


def test_nothing_fits(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "explain", "CUDA out of memory")
    assert code == 1 and out == "" and "Nothing fits" in err
    assert run_json(capsys, "explain", "--json", "CUDA out of memory") == (1, None)


def test_a_log_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text(LOG, "utf-8")
    code, out, _ = run(capsys, "explain", str(path))
    assert code == 0
    assert f"{path}:2 (byte 20), 2 in all" in out
    assert f"{path}:4" in out and "can't optimize a non-leaf Tensor" in out
    code, data = run_json(capsys, "explain", "--log", str(path), "--json")
    assert [(m["line"], m["count"]) for m in data["messages"]] == [(2, 2), (4, 1)]
    assert data["messages"][0]["entries"][0]["id"] == "leaf_written"
    assert data["lines"] == 4 and data["bytes"] == len(LOG)
    code, out, _ = run(capsys, "explain", "--full", str(path))
    assert code == 0 and causes()["leaf_written"].document("en").title in out


def test_the_name_of_an_entry_is_no_folder(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sharing").mkdir()
    monkeypatch.chdir(tmp_path)
    code, out, _ = run(capsys, "explain", "sharing")
    assert code == 0 and causes()["sharing"].document("en").title in out
    assert run(capsys, "explain", "./sharing")[0] == 1


def test_an_empty_log(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "fine.log"
    path.write_text("all is well\n" * 10, "utf-8")
    code, out, err = run(capsys, "explain", str(path))
    assert code == 1 and out == "" and "10 lines" in err


@pytest.mark.parametrize("arguments", [["explain"], ["explain", "-"]])
def test_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    type_in(monkeypatch, LOG.encode())
    code, out, _ = run(capsys, *arguments)
    assert code == 0 and "standard input:2 (byte 20), 2 in all" in out


def test_a_question_on_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    type_in(monkeypatch, "backwardを2回呼ぶとエラー\n".encode())
    assert run_json(capsys, "explain", "--json")[1]["id"] == "second_backward"


def test_a_long_log_on_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    type_in(monkeypatch, b"step\n" * 40_000 + LOG.encode())
    _, data = run_json(capsys, "explain", "--json")
    assert [(m["line"], m["count"]) for m in data["messages"]] == [(40_002, 2), (40_004, 1)]


def test_nothing_on_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    type_in(monkeypatch, b"")
    assert run(capsys, "explain")[0] == 1


def test_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "explain", "runs/none.log")
    assert code == 2 and out == ""
    assert err.startswith("autograd-explain: runs/none.log: ")
    assert run(capsys, "explain", "--log", "none")[0] == 2


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "list")
    assert code == 0 and all(name in out for name in causes())
    code, data = run_json(capsys, "list", "--json", "--lang", "ja", "leaf_written")
    assert causes()["leaf_written"].document("ja").title in [entry["title"] for entry in data]
    assert run(capsys, "list", "no such thing")[0] == 1


def test_list_messages(capsys: pytest.CaptureFixture[str]) -> None:
    _, data = run_json(capsys, "list", "--messages", "--json")
    assert len(data) == len(rows())
    by_id = {row["id"]: row for row in data}
    assert by_id["leaf-inplace"]["entries"] == ["leaf_written"]
    code, out, _ = run(capsys, "list", "--messages", "vmap-item")
    assert code == 0 and out.startswith("vmap-item ")


def folder_of(
    tmp_path: Path, english: str = "## summary\nIt broke.\n\n## cause\nReasons.\n"
) -> Path:
    folder = tmp_path / "own_rule"
    folder.mkdir()
    for language, title in (("en", "Own"), ("ja", "独自"), ("zh", "自定义")):
        text = english if language == "en" else "## summary\n壊れました。\n\n## cause\n理由です。\n"
        questions = "".join(f"  - {title} {n}\n" for n in range(3))
        head = f"---\ntitle: {title}\nquestions:\n{questions}---\n"
        (folder / f"{language}.md").write_text(head + text, "utf-8")
    return folder


def test_check_and_accept(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    code, out, _ = run(capsys, "check", str(folder))
    assert code == 1 and "translates another en.md" in out
    assert run(capsys, "check", "--accept", "ja", str(folder))[0] == 0
    assert run(capsys, "check", "--accept", "zh", str(tmp_path))[0] == 0
    assert 'english: "sha256:' in (folder / "ja.md").read_text("utf-8")
    code, out, _ = run(capsys, "check", str(folder))
    assert "translates another en.md" not in out
    (folder / "en.md").write_text(
        (folder / "en.md").read_text("utf-8").replace("broke", "failed"), "utf-8"
    )
    assert run(capsys, "check", str(folder))[0] == 1


def test_check_names_unknown_messages(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    (folder / "diagnose.py").write_text('PATTERNS = ("leaf-inplaec",)\nEXAMPLE = {}\n', "utf-8")
    code, data = run_json(capsys, "check", "--json", str(folder))
    assert code == 1
    assert any("leaf-inplaec" in problem for problem in data[str(folder)])


def test_check_knows_the_recorders_signals() -> None:
    from autograd_explain.cli.check import SIGNALS
    from autograd_explain.record import detect

    sources = [path.read_text("utf-8") for path in Path(detect.__file__).parent.glob("*.py")]
    named = (n for text in sources for n in re.findall(r'CandidateFault\(\s*"([a-z-]+)"', text))
    assert set(named) == SIGNALS


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("diagnose.py", "def diagnose(scene:\n", "diagnose.py: SyntaxError"),
        ("diagnose.py", "PATTERNS = ()\n", "diagnose.py: has no function 'diagnose'"),
        ("rewrite.py", "x = 1\n", "rewrite.py: has no function 'propose'"),
        ("zh.md", "---\ntitle: [\n---\n", "the texts cannot be read: "),
    ],
)
def test_check_of_a_broken_folder(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, file: str, text: str, said: str
) -> None:
    folder = folder_of(tmp_path)
    (folder / file).write_text(text, "utf-8")
    code, out, err = run(capsys, "check", str(folder))
    assert code == 1 and err == ""
    assert sum(said in line for line in out.splitlines()) == 1


def test_a_folder_that_cannot_be_used_is_told_in_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = folder_of(tmp_path)
    (folder / "en.md").write_text("---\ntitle: [\n---\n", "utf-8")
    code, out, err = run(capsys, "list", "--causes", str(tmp_path))
    assert code == 0 and "own_rule" not in out and "leaf_written" in out
    assert err.count("\n") == 1 and "own_rule is left out: " in err
    _, _, err = run(capsys, "explain", "--causes", str(tmp_path / "none"), "leaf_written")
    assert err == f"autograd-explain: {tmp_path / 'none'}: No such file or directory\n"


def test_check_of_a_known_cause(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "check", "graph_cut")[0] == 0


def test_check_of_no_folder(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(capsys, "check", str(tmp_path / "none"))[0] == 2
    assert run(capsys, "check", "no_such_cause")[0] == 2
    assert run(capsys, "check", str(tmp_path))[0] == 2


def test_docs_as_markdown(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, _ = run(capsys, "docs", str(tmp_path), "--format", "markdown")
    assert code == 0 and str(3 * (len(causes()) + 1)) in out
    for language in ("en", "ja", "zh"):
        title = causes()["leaf_written"].document(language).title
        page = tmp_path / language / "causes" / "leaf_written.md"
        assert title in page.read_text("utf-8")
        assert title in (tmp_path / language / "index.md").read_text("utf-8")


def test_own_causes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder_of(tmp_path)
    code, out, _ = run(capsys, "list", "--causes", str(tmp_path))
    assert code == 0 and "own_rule" in out


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["explian"],
        ["explain", "--lang", "fr", "x"],
        ["check", "--accept", "en"],
        ["docs", "-x"],
    ],
)
def test_usage_errors(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        main(arguments)
    assert exit.value.code == 2
    assert "usage:" in capsys.readouterr().err


def test_help_tells_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        main(["--help"])
    assert exit.value.code == 0 and "exit codes" in capsys.readouterr().out


def test_as_a_process(tmp_path: Path) -> None:
    """`python -m autograd_explain … | head -1`: no torch, no traceback about the pipe."""
    command = f"{sys.executable} -X importtime -m autograd_explain explain leaf_written | head -1"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True
    )
    assert done.returncode == 0
    assert "leaf_written" in done.stdout
    assert "Traceback" not in done.stderr and "BrokenPipe" not in done.stderr
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "autograd_explain.search.find" in imported
    assert not {"torch", "libcst", "IPython"} & imported


def test_verify_a_proposed_script(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    script, proposed = tmp_path / "train.py", tmp_path / "proposed.py"
    text = (
        "import torch\nw = torch.ones(3, requires_grad=True)\n"
        "y = w.exp()\ny.mul_(2)\ny.sum().backward()\n"
    )
    script.write_text(text, "utf-8")
    proposed.write_text(text.replace("y.mul_", "y = y.mul"), "utf-8")
    code, verdict = run_json(capsys, "verify", "--json", str(script), str(proposed))
    assert (code, verdict["outcome"], verdict["compared"]) == (0, "verified", ["w.grad"])
    code, _, err = run(capsys, "verify", str(tmp_path / "none.py"), str(proposed))
    assert code == 2
    assert "none.py cannot be read" in err
    proposed.write_text(text.replace("y.mul_", "y.data.mul_"), "utf-8")
    code, out, _ = run(capsys, "verify", str(script), str(proposed))
    assert code == 1
    assert out.startswith("differs: ")
