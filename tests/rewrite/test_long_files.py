"""Files of ten thousand lines: what an edit leaves alone costs next to nothing."""

from __future__ import annotations

import difflib
import gc
from typing import Any
from unittest import mock

import libcst as cst
import pytest
from libcst.metadata import MetadataWrapper, PositionProvider

from autograd_explain import loaded
from autograd_explain.model import Edit
from autograd_explain.program import Program, Source
from autograd_explain.render.diff import hunks_of
from autograd_explain.render.line_matcher import LineMatcher
from autograd_explain.rewrite.engine.tree import tree_of

FUNCTION = "def f{0}(x):\n    y = x * {0}\n\n    return y\n\n\n"
LONG = "".join(FUNCTION.format(n) for n in range(2000))


def compared(edit: Edit) -> int:
    """How many lines were looked at to draw an edit."""
    looked, chain = [], difflib.SequenceMatcher.set_seq2

    def set_seq2(self: difflib.SequenceMatcher[str], lines: list[str]) -> None:
        looked.append(len(lines))
        chain(self, lines)

    with mock.patch.object(difflib.SequenceMatcher, "set_seq2", set_seq2):
        list(hunks_of(edit))
    return sum(looked)


def test_a_diff_compares_what_has_changed() -> None:
    new = LONG.replace("y = x * 1990\n", "y = x * 1990\n    y.retain_grad()\n")
    edit = Edit(None, "long.py", LONG, new)
    (hunk,) = hunks_of(edit)
    at = LONG[: LONG.index("y = x * 1990")].count("\n") + 1
    assert [(line.sign, line.number) for line in hunk.lines] == [(" ", at), ("+", at + 1)]
    assert compared(edit) < 10


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("abc", "abc"),
        ("abbc", "abbbc"),
        ("abbbc", "abbc"),
        ("abcdef", "abxdyf"),
        ("", "ab"),
        ("ab", ""),
        ("abab", "ab"),
        ("xaby", "yabx"),
    ],
)
def test_the_opcodes_lead_from_the_old_text_to_the_new_one(old: str, new: str) -> None:
    made, end = "", (0, 0)
    for tag, i, j, k, m in LineMatcher(old, new).get_opcodes():
        assert (i, k) == end
        assert (tag == "equal") == (old[i:j] == new[k:m])
        made, end = made + new[k:m], (j, m)
    assert made == new and end == (len(old), len(new))


def test_a_tree_is_read_once() -> None:
    text = LONG[: LONG.index("def f300(")]
    with mock.patch.object(cst.Module, "visit", side_effect=AssertionError("walked once more")):
        tree = tree_of(Program(), Source(None, "long.py", text, text, "long.py"))
    assert tree.parsed and gc.isenabled()
    wrapper = MetadataWrapper(tree.module, unsafe_skip_copy=True)
    assert tree.positions == wrapper.resolve(PositionProvider)


def test_code_is_compared_with_what_stands_at_its_line() -> None:
    text = "".join(
        f"class C{n}:\n    def __init__(self):\n        self.n = {n}\n" for n in range(99)
    )
    namespace: dict[str, Any] = {}
    exec(compile(text, "long.py", "exec"), namespace)
    with mock.patch.object(loaded, "_same", wraps=loaded._same) as same:
        assert loaded.is_text_of(text, namespace["C98"].__init__.__code__)
        assert not loaded.is_text_of("\n" + text, namespace["C98"].__init__.__code__)
    assert same.call_count == 1
