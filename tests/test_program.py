"""A source's lines, and where its nodes stand."""

from __future__ import annotations

import ast
import sys
import time
from importlib import util
from pathlib import Path
from tempfile import NamedTemporaryFile

import pytest

import autograd_explain
from autograd_explain.incident import Incident, frames_of
from autograd_explain.model import Kind, lines_of
from autograd_explain.program import Program, Source, is_library

#: Texts whose lines `str.splitlines` counts differently.
TEXTS = ("a = 1\n\x0c\nb = 2\n", 's = "a\u2028b\x85c"\nb = 2', "a = 1\r\n\x0c\rb = 2\r\n", "a", "")


def source_of(text: str) -> Source:
    return Source(1, None, text, text, "<cell>")


@pytest.mark.parametrize("text", TEXTS)
def test_lines_are_counted_as_python_counts_them(text: str) -> None:
    source = source_of(text)
    assert "".join(lines_of(text, keepends=True)) == text
    for statement in source.tree.body:
        assert source.lines[statement.lineno - 1] == ast.get_source_segment(text, statement)
        assert source.segment(statement) == source.place(statement.lineno).source


def test_the_text_of_a_node_is_what_ast_says() -> None:
    text = 'x = f(\n  "é\u2028", (a +\n   b).c)  # ü\nif x:\n    y = [i for i in "本"\n  ]; z = 1\n'
    source = source_of(text)
    for node in source.nodes:
        if isinstance(node, (ast.expr, ast.stmt)):
            assert source.segment(node) == ast.get_source_segment(text, node)


def test_each_node_of_a_long_file_is_placed_without_cutting_the_text_anew() -> None:
    text = "".join(f"def f{n}(x):\n    y = x.exp() * {n}\n    return y\n\n" for n in range(8_000))
    source = source_of(text)
    nodes = source.nodes[::10]
    started = time.process_time()
    found = [(source.span(node), source.segment(node)) for node in nodes]
    assert len(set(found)) > 5_000
    assert time.process_time() - started < 4  # cutting the text takes some 2 ms: 20 s in all


PAGES = """import torch
\x0c
def train():
    w = torch.ones(3, requires_grad=True)
    y = (w * 2).exp()
    loss = y.sum()
    y.add_(1)
    loss.backward()
"""


def test_a_file_of_several_pages_is_told_in_its_own_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "of_several_pages.py").write_text(PAGES)
    monkeypatch.syspath_prepend(tmp_path)
    import of_several_pages  # type: ignore[import-not-found]

    try:
        of_several_pages.train()
    except RuntimeError as error:
        found = autograd_explain.explain(error)
    finally:
        del sys.modules["of_several_pages"]
    assert found is not None
    places = [e.place for e in found.diagnosis.finding.events if e.place is not None]
    assert (8, "loss.backward()") in [(p.line, p.source) for p in places]
    for rewrite in found.diagnosis.rewrites:
        assert "\n\x0c\n" in rewrite.edits[0].new_source


def test_of_statements_side_by_side_the_one_meant_is_the_line() -> None:
    text = "名 = 1; hidden += f(\n  名); loss = g(hidden)  # a; b\nx = 1  # a; b\n"
    source = Source(1, None, text, text, "cell")
    first, second, third, fourth = source.tree.body
    assert [source.place(n.lineno, None, n).source for n in (first, second, third, fourth)] == [
        *("名 = 1", "hidden += f(", "loss = g(hidden)", "x = 1  # a; b")
    ]
    place = source.place(2, None, third)
    assert place.indent == place.span.column == 6  # type: ignore[union-attr]
    assert source.place(2).source == "名); loss = g(hidden)  # a; b"
    assert source.place(2, column=3).source == "名)"


def test_a_cell_of_one_line_tells_its_parts() -> None:
    import torch

    names: dict[str, object] = {"torch": torch}
    text = "w = torch.ones(3, requires_grad=True); h = w.exp(); h += 1; h.sum().backward()"
    source = Source(1, None, text, text, "<one line>")
    try:
        exec(compile(text, "<one line>", "exec"), names)
    except RuntimeError as error:
        frames = frames_of(error.__traceback__)
    found = Incident(Kind.ERROR, "", Program((source,)), names, frames)
    assert found.place is not None
    assert found.place.source == ("h.sum().backward()" if sys.version_info >= (3, 11) else text)


def test_what_a_library_writes_to_a_temporary_file_is_no_code_of_the_users() -> None:
    """As torch_geometric does: the module has a name of its own, under which it is imported."""
    found = {}
    for name, prefix in (("layers.gat_propagate", "layers.gat_propagate_"), ("trainer", "run_")):
        with NamedTemporaryFile("w", prefix=prefix, suffix=".py") as file:
            spec = util.spec_from_file_location(name, file.name)
            assert spec is not None
            sys.modules[name] = util.module_from_spec(spec)
            found[name] = is_library(file.name)
        del sys.modules[name]
    assert found == {"layers.gat_propagate": True, "trainer": False}
