"""The screens as a whole, in every language (`--renew-expected` renews the files)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from autograd_explain.render import LANGUAGES, Explanation

from .samples import LOOKS, SAMPLES

Golden = Callable[[str, str], None]
_STYLE = re.compile(r"<style>.*?</style>", re.DOTALL)


@pytest.fixture(params=SAMPLES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def _in_every_language(name: str, show: Callable[[Explanation], str]) -> str:
    explanation = SAMPLES[name]()
    shown = (f"{'=' * 30} {lang}\n{show(explanation.in_language(lang))}\n" for lang in LANGUAGES)
    return "".join(shown)


def _text(explanation: Explanation) -> str:
    return f"{explanation.to_text(80)}\n\n{explanation.with_detail('full').to_text(100)}"


def test_text(name: str, golden: Golden) -> None:
    golden(f"{name}.txt", _in_every_language(name, _text))


def test_html(name: str, golden: Golden) -> None:
    golden(f"{name}.html", _in_every_language(name, lambda e: _STYLE.sub("", e.to_html())))


def test_markdown(name: str, golden: Golden) -> None:
    golden(f"{name}.md", _in_every_language(name, Explanation.to_markdown))


def test_dict(name: str, golden: Golden) -> None:
    def show(explanation: Explanation) -> str:
        return json.dumps(explanation.to_dict(), ensure_ascii=False, indent=1)

    golden(f"{name}.json", _in_every_language(name, show))


@pytest.mark.parametrize("looked", LOOKS)
def test_what_a_look_shows(looked: str, golden: Golden) -> None:
    look = LOOKS[looked]
    shown = [
        f"{'=' * 30} {language} {width}\n{replace(look, language=language).to_text(width)}\n"
        for language in LANGUAGES
        for width in (80, 110)
    ]
    golden(f"{looked}.txt", "".join(shown))
    html = look.to_html()
    assert "<b>gate" not in html and html.count("<svg") == (7 if "graph" in looked else 5)
