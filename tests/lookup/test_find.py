"""A pasted text or a question finds its entry, without torch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import autograd_explain
from autograd_explain.search import language_in, lookup, similar
from autograd_explain.search.causes import Cause, causes, constants
from autograd_explain.search.find import ranking

HERE = Path(__file__).parent
QUESTIONS = json.loads((HERE / "questions.json").read_text("utf-8"))
EVERY = [(language, *pair) for language in ("en", "ja", "zh") for pair in QUESTIONS[language]]
LEAF = "a leaf Variable that requires grad is being used in an in-place operation."


def first(text: str) -> str | None:
    answer = lookup(text)
    return None if answer is None else answer.id


def test_there_are_sixty_questions() -> None:
    assert len(EVERY) == 60
    assert {len(QUESTIONS[language]) for language in ("en", "ja", "zh")} == {20}


def test_questions_find_their_entry_first() -> None:
    missed = [(q, expected, first(q)) for _, q, expected in EVERY if first(q) != expected]
    assert len(EVERY) - len(missed) >= 54, missed


@pytest.mark.parametrize("question", QUESTIONS["none"])
def test_nothing_fits(question: str) -> None:
    assert lookup(question) is None


def test_a_foreign_error_is_no_question() -> None:
    """Its words may be those of an entry: what Python prints as an error was recognised or not."""
    foreign = (HERE.parent / "match" / "foreign.txt").read_text("utf-8").splitlines()
    errors = [text for text in foreign if "Error: " in text]
    assert len(errors) >= 200
    assert [text for text in errors if lookup(text) is not None] == []


@pytest.mark.parametrize(
    "question",
    [
        "how to load a model checkpoint",
        "DataLoader num_workers slow",
        "reduce gpu memory usage",
        "git detach head",
        "hidden files in linux",
        "損失関数の種類",
        "GPUメモリが足りない",
        "显存不足",
        "如何保存模型",
    ],
)
def test_questions_about_something_else(question: str) -> None:
    assert lookup(question) is None


@pytest.mark.parametrize("question", ["what is a leaf tensor", "葉テンソルとは", "什么是叶子张量"])
def test_a_notion_is_explained_by_a_topic(question: str) -> None:
    assert first(question) == "leaf_tensors"


def test_every_entrys_own_questions_find_it(request: pytest.FixtureRequest) -> None:
    """In a plain run every third: of each entry others in each language."""
    part = 1 if request.config.getoption("--all-notebooks") else 3
    asked = [
        (question, cause.name)
        for first, cause in enumerate(causes().values())
        for shift, document in enumerate(cause.documents.values())
        for question in document.questions[(first + shift) % part :: part]
    ]
    assert {name for _, name in asked} >= {c.name for c in causes().values() if _asks(c)}
    answers = ranking(causes()).answers
    assert [(q, name) for q, name in asked if name not in [r.name for r in answers(q)[:2]]] == []


def _asks(cause: Cause) -> bool:
    return any(document.questions for document in cause.documents.values())


def test_a_name_finds_its_entry() -> None:
    for name in causes():
        assert first(name) == first(name.replace("_", "-")) == name


def test_a_pasted_traceback() -> None:
    text = f"""
    ---------------------------------------------------------------------------
    RuntimeError                              Traceback (most recent call last)
    Cell In[3], line 2
          1 w = torch.ones(3, requires_grad=True)
    ----> 2 w += 1

    RuntimeError: {LEAF}
    """
    answer = lookup(text)
    assert answer is not None and answer.match is not None
    assert (answer.id, answer.match.pattern) == ("leaf_written", "leaf-inplace")


@pytest.mark.parametrize(
    "text",
    [
        f"> RuntimeError: {LEAF}",
        f"\x1b[0;31mRuntimeError\x1b[0m: {LEAF}",
        f"[rank0]: RuntimeError: {LEAF}",
        f"{LEAF} というエラーが出ます。どうすればいいですか",
        f"报错：“{LEAF}” 怎么办",
        f"```\nRuntimeError: {LEAF}\n```",
        "RuntimeError: a leaf Variable that requires grad has been used in an in-place operation.",
    ],
)
def test_whatever_stands_around_the_message(text: str) -> None:
    assert first(text) == "leaf_written"


def test_a_messages_id() -> None:
    answer = lookup("leaf-inplace")
    assert answer is not None and answer.id == "leaf_written"


def test_the_surroundings_decide_between_causes() -> None:
    message = (
        "RuntimeError: one of the variables needed for gradient computation has been modified by "
        "an inplace operation: [torch.FloatTensor [2, 2]], which is output 0 of AsStridedBackward0,"
        " is at version 2; expected version 1 instead."
    )
    assert first(message) == "saved_value_overwritten"
    traceback = f"    optimD.step()\n    lossG.backward()\n{message}"
    assert first(traceback) == "step_between_backwards"


@pytest.mark.parametrize("text", ["", " ", "?", "x" * 5000, "\x00", "a b " * 200])
def test_odd_texts(text: str) -> None:
    assert lookup(text) is None


def test_a_message_without_an_entry_is_still_recognised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autograd_explain.search.find.causes", lambda extra: {})
    answer = lookup(f"RuntimeError: {LEAF}", "ja")
    assert answer is not None and answer.id == "unknown"
    assert answer.to_dict()["message"]["id"] == "leaf-inplace"
    for shown in (answer.to_text(200), answer.to_html(), answer.to_markdown()):
        assert "leaf-inplace" not in shown, "the id is the program's, not the reader's"
        assert "a leaf Variable that requires grad" in shown


@pytest.mark.parametrize("language", ["en", "ja", "zh"])
def test_an_answer_is_shown_in_every_form(language: str) -> None:
    answer = lookup(LEAF, language)
    assert answer is not None
    title = causes()["leaf_written"].document(language).title
    assert title in answer.to_text()
    assert title in answer.to_html()
    assert title in answer.to_markdown()
    assert answer.to_dict()["entries"][0]["title"] == title
    assert answer.in_language("zh").language == "zh"
    json.dumps(answer.to_dict())


def test_the_public_function() -> None:
    answer = autograd_explain.lookup(LEAF, "zh")
    assert answer.language == "zh" and answer.id == "leaf_written"
    assert autograd_explain.lookup("CUDA out of memory") is None


def test_a_folder_of_the_users_own(tmp_path: Path) -> None:
    folder = tmp_path / "farm_rule"
    folder.mkdir()
    (folder / "en.md").write_text(
        "---\ntitle: The farm rule\nquestions:\n  - why did my tensor leave the farm\n---\n"
        "## summary\nIt left.\n## cause\nThe gate was open.\n",
        "utf-8",
    )
    (folder / "diagnose.py").write_text(
        'import torch_is_not_imported_here\nPATTERNS = ("farm-left",)\n'
        'MESSAGES = {"farm-left": "tensor {name} left the farm"}\nEXAMPLE: dict[str, str] = {}\n',
        "utf-8",
    )
    extra = (str(tmp_path),)
    answer = lookup("RuntimeError: tensor w1 left the farm", "en", extra)
    assert answer is not None and answer.id == "farm_rule" and answer.match is not None
    assert answer.match.captures == {"name": "w1"}
    question = lookup("why did the tensor leave our farm?", "en", extra)
    assert question is not None and question.id == "farm_rule"


def test_constants_are_read_and_not_run() -> None:
    source = (
        'A = ("x", "y")\nB: dict[str, str] = {"k": "v"}\nC = (*A, "z")\nD = print("no")\nE: int\n'
    )
    assert constants(source) == {"A": ("x", "y"), "B": {"k": "v"}, "C": ("z",), "D": ("no",)}
    assert constants("not python (") == {}


def test_torch_is_not_imported() -> None:
    code = (
        "import sys, autograd_explain.search as s;"
        f"assert s.lookup({LEAF!r}) and s.lookup('why is grad None') is not 1;"
        "print([m for m in ('torch', 'libcst', 'IPython') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_slip_in_a_name_is_told() -> None:
    assert similar("saved_value_overwriten")[0] == "saved_value_overwritten"
    assert similar("second-backwards") == ("second_backward",)
    for other in ("saved_value_overwritten", "why is my grad None", "grad", "retain_graph=True"):
        assert similar(other) == ()


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("勾配が None になる", "ja"),
        ("为什么梯度是 None", "zh"),
        ("why is my grad None", "en"),
        (
            "y = 隠れ状態.sum()  # ここ\nRuntimeError: a leaf Variable that requires grad is being "
            "used in an in-place operation.",
            "en",
        ),
    ],
)
def test_a_question_is_in_its_own_language(text: str, language: str) -> None:
    assert language_in(text, "en") == language


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("勾配が None になる", "ja"),
        ("grad is not None", "ja"),
        ("retain_graph", "ja"),
        (LEAF, "ja"),
        ("why is my grad None", "en"),
        ("how do I get the gradient of an intermediate tensor", "en"),
    ],
)
def test_in_a_session_in_japanese(text: str, language: str) -> None:
    assert language_in(text, "ja") == language
