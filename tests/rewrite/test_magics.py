"""Magics hidden and put back."""

from __future__ import annotations

import pytest
from rewriting import rewritten

from autograd_explain.rewrite.engine.draft import compiles
from autograd_explain.rewrite.engine.magics import mask
from autograd_explain.rewrite.transforms.grad_mode import under_no_grad
from autograd_explain.rewrite.transforms.out_of_place import out_of_place

CELLS = [
    "%%time\nx += 1\n",
    "%%capture out\n%%time\nx += 1\n",
    "\n%%time\nx += 1\n",
    "%matplotlib inline\nx += 1\n",
    "!pip install a \\\n   b\nx += 1\n",
    "files = !ls\nx += 1\n",
    "v = %who_ls\nx += 1\n",
    "x?\nx += 1\n",
    "torch.relu??\nx += 1\n",
    "?x\nx += 1\n",
    "if c:\n    %time f()\n    !echo {x}\nx += 1\n",
    "a = (1\n% 2)\nx += 1\n",
    's = """\n%not a magic\n!no\n"""\nx += 1\n',
    "x += 1\n%timeit f(x)",
    "x += 1  # 100%\n",
    "await f()\nx += 1\n",
    "!echo 'quote\" '''\nx += 1\n",
    '%cd "C:\\new"\nx += 1\n',
]


@pytest.mark.parametrize("text", CELLS)
def test_round_trip(text: str) -> None:
    masked = mask(text)
    assert masked is not None
    assert compiles(masked.text)
    assert masked.text.count("\n") == text.count("\n")
    assert masked.unmask(masked.text) == text


@pytest.mark.parametrize("text", CELLS)
def test_everything_else_stays_to_the_letter(text: str) -> None:
    assert rewritten(out_of_place, text, "x += 1") == text.lstrip().replace("x += 1", "x = x + 1")


@pytest.mark.parametrize("text", CELLS)
def test_wrapped(text: str) -> None:
    found = rewritten(under_no_grad, text, "x += 1")
    assert found == text.lstrip().replace("x += 1", "with torch.no_grad():\n    x += 1")


def test_a_lost_magic_is_noticed() -> None:
    masked = mask("!ls\nx = 1\n")
    assert masked is not None
    assert masked.unmask("x = 1\n") is None
    assert masked.unmask(masked.text + masked.text) is None


def test_other_languages_are_left_alone() -> None:
    assert rewritten(out_of_place, "%%bash\nx += 1 | grep\n", "x += 1") is None


def test_text_with_the_mark_itself_is_left_alone() -> None:
    assert mask("x = '\ue000'\n!ls\n") is None
