"""Tables that are computed: by running torch, in the reader's words, in every form of output."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from torch.overrides import TorchFunctionMode

from autograd_explain.knowledge.entry import Entry, entries
from autograd_explain.render import topic_of
from autograd_explain.render.table import columns_of

SHARING = entries()["sharing"]
BY_CODE = {row["code"]: row for row in SHARING.rows}


def cells(code: str) -> tuple[str, ...]:
    """same, memory, gradient, version."""
    return tuple(value for name, value in BY_CODE[code].items() if name != "code")


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("x.detach()", ("no", "yes", "no", "yes")),
        ("x.data", ("no", "yes", "no", "no")),
        ("x.view(-1)", ("no", "yes", "yes", "yes")),
        ("x.clone()", ("no", "no", "yes", "–")),
        ("x.detach().clone()", ("no", "no", "no", "–")),
        ("x.cpu()", ("yes", "yes", "yes", "yes")),
        ("x.float()", ("yes", "yes", "yes", "yes")),
        ("x.double()", ("no", "no", "yes", "–")),
        ("x.numpy()", ("RuntimeError", "–", "–", "–")),
        ("x.detach().numpy()", ("no", "yes", "no", "no")),
        ("torch.tensor(x)", ("no", "no", "no", "–")),
        ("torch.as_tensor(x)", ("yes", "yes", "yes", "yes")),
        ("torch.from_numpy(a)", ("no", "yes", "–", "–")),
        ("torch.tensor(a)", ("no", "no", "–", "–")),
    ],
)
def test_sharing(code: str, expected: tuple[str, ...]) -> None:
    assert cells(code) == expected


@pytest.mark.parametrize(
    ("language", "row"),
    [
        ("en", "| `x.data` | no | yes | no | no |"),
        ("ja", "| `x.data` | いいえ | はい | いいえ | いいえ |"),
        ("zh", "| `x.data` | 否 | 是 | 否 | 否 |"),
    ],
)
def test_table_is_shown_in_every_language(language: str, row: str) -> None:
    topic = topic_of(SHARING.folder, SHARING.example, language)
    markdown = topic.to_markdown()
    assert row in markdown and "{" not in markdown.split("```")[0]
    shown = [line for line in markdown.splitlines() if line.startswith("|")]
    assert len(shown) == len(BY_CODE) + 2
    assert topic.to_html().count("<tr>") == len(BY_CODE) + 1
    text = topic.to_text()
    assert all(f"`{code}` " in text for code in BY_CODE), "a cell of code was broken"


def test_the_topic_pickles_without_its_rows() -> None:
    topic = pickle.loads(pickle.dumps(topic_of(SHARING.folder, SHARING.example, "zh")))
    assert "`x.detach()`" in topic.to_markdown()


def test_copying() -> None:
    rows = {row["code"]: row for row in entries()["copying_tensors"].rows}
    connected = {code for code, row in rows.items() if row["gradient"] == "yes"}
    assert connected == {"x.clone()", "torch.empty_like(x).copy_(x)"}
    assert {code for code, row in rows.items() if row["warns"] == "yes"} == {
        "torch.tensor(x)",
        "x.new_tensor(x)",
    }
    assert rows["copy.deepcopy(x)"]["grad"] == "yes"
    assert rows["torch.tensor(x.tolist())"]["layout"] == "no"


class Loud(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        raise AssertionError("a user's function mode saw our own operations")


def test_rows_do_not_depend_on_the_session(recwarn: pytest.WarningsRecorder) -> None:
    again = Entry("sharing", SHARING.folder)
    torch.manual_seed(0)
    state = torch.get_rng_state()
    with Loud(), torch.inference_mode():
        rows: tuple[Mapping[str, str], ...] = again.rows
    assert rows == SHARING.rows
    assert torch.equal(torch.get_rng_state(), state)
    assert not [w for w in recwarn if "copy construct" in str(w.message)]


def test_other_folders_have_no_table(tmp_path: Path) -> None:
    assert columns_of(tmp_path) == frozenset()
    assert columns_of(SHARING.folder) == {"code", "same", "memory", "gradient", "version"}


def test_a_row_of_a_team(tmp_path: Path) -> None:
    """A folder outside the package may bring a table too."""
    folder = tmp_path / "costs_here"
    folder.mkdir()
    (folder / "table.py").write_text("def rows():\n    yield {'what': 'a*b', 'good': 'no'}\n")
    front = "---\ntitle: T\nquestions: [a, b, c]\n---\n"
    body = "## summary\nOne.\n\n## background\n| a | b |\n| - | - |\n| `{what}` | {good} |\n"
    (folder / "en.md").write_text(front + body, "utf-8")
    topic = topic_of(folder, Entry("costs_here", folder).example)
    assert "| `a*b` | no |" in topic.to_markdown()
    for name in [n for n in sys.modules if n.endswith(".costs_here.table")]:
        del sys.modules[name]
