"""Reading a text file: front matter, sections, variants, languages."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograd_explain.render.texts import accept, document, load, read, revision

TEXT = """---
title: A title
see:
  - {title: Docs, url: "https://pytorch.org"}
questions: [one, two]
documents: [d001]
english: "sha256:000000000000"
---
## summary
A `{x}`.

## summary odd
An odd one.

## cause
Text.

```python
## not a section
```

~~~
```
## nor this
~~~

## fix clone

Copy it
Because.

More.
"""


def test_front_matter_and_sections() -> None:
    found = read(TEXT)
    assert (found.title, found.questions, found.documents) == ("A title", ("one", "two"), ("d001",))
    assert found.see == ({"title": "Docs", "url": "https://pytorch.org"},)
    assert found.english == "sha256:000000000000"
    assert list(found.sections) == ["summary", "summary odd", "cause", "fix clone"]
    assert "## not a section" in found.sections["cause"] and "## nor" in found.sections["cause"]


def test_variants_and_fallbacks() -> None:
    found = read(TEXT)
    assert found.summary({"x": "w"}, "odd").plain() == "An odd one."
    assert found.summary({"x": "w"}, "other").plain() == "A `w`."
    assert found.summary({}).plain() == "A title"
    assert found.source("background") == "" and not found.passage("background", {})
    assert found.items("warnings", {}) == ()


def test_a_variant_has_its_own_list() -> None:
    found = read("---\ntitle: T\n---\n## check\n- general\n\n## check numpy\n- the array\n")
    assert [i.plain() for i in found.items("check", {}, "numpy")] == ["the array"]
    assert [i.plain() for i in found.items("check", {}, "data")] == ["general"]


def test_fixes() -> None:
    found = read(TEXT)
    assert found.fixes() == ("clone",)
    assert found.fix_title("clone", {}).plain() == "Copy it"
    assert found.fix_reason("clone", {}).markdown() == "Because.\n\nMore."
    assert found.fix_title("move_step", {}).plain() == "move step"


@pytest.mark.parametrize(
    "text", ["", "no front matter", "---\ntitle: x\n---\n", "---\nsee: 3\n---\n## summary"]
)
def test_odd_files_are_read(text: str) -> None:
    assert read(text).summary({}) is not None


def test_languages_fall_back_to_english() -> None:
    texts = {"en": TEXT, "ja": "---\ntitle: 題\n---\n## summary\n要約。\n"}
    assert document(texts, "ja").title == "題"
    assert document(texts, "ja").see == read(TEXT).see
    assert document(texts, "zh").title == "A title"
    assert document({}, "zh").title == ""


def test_accept_writes_the_revision(tmp_path: Path) -> None:
    (tmp_path / "en.md").write_text(TEXT, "utf-8")
    (tmp_path / "ja.md").write_text("---\ntitle: 題\n---\n## summary\n要約。\n", "utf-8")
    assert accept(tmp_path, "ja") and not accept(tmp_path, "ja")
    texts = load(tmp_path)
    assert read(texts["ja"]).english == revision(TEXT.encode())
    assert read(texts["ja"]).sections == {"summary": "要約。"}
    (tmp_path / "zh.md").write_text("no front matter", "utf-8")
    with pytest.raises(ValueError, match="front matter"):
        accept(tmp_path, "zh")
