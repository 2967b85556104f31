"""The example notebooks, run through a real kernel: what they say is what the user sees.

A code cell that goes wrong on purpose says so in its metadata, `autograd_explain: {"cause": …}`
with `"raises": true` where it fails; `test_situations.py` reads the rest of it, of every notebook.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
import pytest

from autograd_explain.render.lint import other_terms

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))
_CAUSE = re.compile(r"── autograd_explain · (\w+) ")
#: A word of every explanation that the example's language has for itself.
_HEADINGS = {"en": "Rewrite", "ja": "修正案", "zh": "修改建议"}


def _script(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"examples_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def executed(path: Path) -> nbformat.NotebookNode:
    return _script("execute").executed(path)


def committed(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def code_cells(book: nbformat.NotebookNode) -> Iterator[nbformat.NotebookNode]:
    yield from (cell for cell in book.cells if cell.cell_type == "code")


def displayed(cell: nbformat.NotebookNode) -> list[str]:
    """The explanations under a cell, as text."""
    texts = [o.data.get("text/plain", "") for o in cell.outputs if o.output_type == "display_data"]
    return [text for text in texts if _CAUSE.search(text)]


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def path(request: pytest.FixtureRequest) -> Path:
    found: Path = request.param
    return found


def test_there_is_one_for_each_document_and_a_quick_start() -> None:
    assert len(NOTEBOOKS) == 6


@pytest.mark.one_in(3)
def test_every_cell_does_what_it_says(path: Path) -> None:
    check(path, executed(path))


def test_every_committed_cell_has_done_what_it_says(path: Path) -> None:
    check(path, committed(path))


def check(path: Path, book: nbformat.NotebookNode) -> None:
    for cell in code_cells(book):
        told = f"{path.name} In[{cell.execution_count}]"
        expected = cell.metadata.get("autograd_explain", {})
        failed = [o for o in cell.outputs if o.output_type == "error"]
        assert bool(failed) == expected.get("raises", False), (told, failed)
        asked = cell.source.startswith("%autograd_explain")
        causes = [_CAUSE.search(text)[1] for text in displayed(cell)]  # type: ignore[index]
        if not asked:
            assert causes == [c for c in [expected.get("cause")] if c], told
        noise = "".join(o.text for o in cell.outputs if o.output_type == "stream")
        assert "internal error" not in noise and "内部" not in noise, told


@pytest.mark.one_in(3)
def test_explanations_are_complete(path: Path) -> None:
    """HTML and text, in the notebook's language, with a rewrite."""
    language = path.stem.rpartition("_")[2]
    heading = _HEADINGS.get(language, _HEADINGS["en"])
    for cell in code_cells(executed(path)):
        if "autograd_explain" in cell.metadata:
            (output,) = (o for o in cell.outputs if "text/html" in o.get("data", {}))
            assert heading in output.data["text/plain"]
            assert "<section" in output.data["text/html"]
            assert "<script" not in output.data["text/html"]


@pytest.mark.one_in(3)
def test_committed_explanations_are_those_of_today(path: Path) -> None:
    """`python examples/execute.py` brings the notebooks up to date.

    Up to the rewrites: whether there was time to try them depends on the machine.
    """
    pairs = zip(code_cells(committed(path)), code_cells(executed(path)), strict=True)
    for old, new in pairs:
        if "autograd_explain" in new.metadata:
            assert told(old) == told(new), f"{path.name} In[{new.execution_count}]"


def told(cell: nbformat.NotebookNode) -> list[str]:
    """What happened, without what to do about it."""
    return [re.split("|".join(_HEADINGS.values()), text)[0] for text in displayed(cell)]


def test_its_own_words_are_those_of_the_explanations(path: Path) -> None:
    language = path.stem.rpartition("_")[2]
    said = "\n".join(cell.source for cell in committed(path).cells if cell.cell_type == "markdown")
    assert list(other_terms(said, language)) == []


def test_outputs_hold_no_paths_of_a_machine() -> None:
    tidy = _script("execute")._without_paths
    assert tidy("File \x1b[32m/home/me/lib/python3.11/site-packages/torch/x.py:3") == (
        "File \x1b[32msite-packages/torch/x.py:3"
    )
    assert tidy("File ~/.venv/lib/site-packages/torch/x.py:3") == "File site-packages/torch/x.py:3"
    assert tidy("/tmp/ipykernel_12/345.py:4: UserWarning") == "<cell>:4: UserWarning"
    assert tidy("a / b, c/d") == "a / b, c/d"


def test_demo_shows_the_explanation(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """What the README's first command prints."""
    page = tmp_path / "page.html"
    notebook = EXAMPLES / "quick_start.ipynb"
    monkeypatch.setattr("sys.argv", ["demo.py", str(notebook), "--html", str(page)])
    _script("demo").main()
    printed = capsys.readouterr().out
    assert "`hidden` was overwritten after the forward pass had saved it" in printed
    assert "hidden = hidden + 0.1" in printed and "RuntimeError: one of the variables" in printed
    assert "more lines: see quick_start.ipynb" in printed
    assert page.read_text("utf-8").count("<section") == 3
