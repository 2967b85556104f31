"""`docs`: a page per entry and language, and an index of each language."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..render.texts import LANGUAGES, passage
from ..render.topic import Topic
from ..search.causes import Cause, causes
from ..search.find import topic
from ..search.words import say
from .exit import Exit

SUFFIX = {"markdown": ".md", "html": ".html"}


def run(options: argparse.Namespace) -> int:
    from . import language_for

    known = causes(tuple(options.causes))
    languages = [options.lang] if options.lang else list(LANGUAGES)
    count = 0
    for path, text in pages(known, languages, options.format):
        target = options.out / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")
        count += 1
    print(say("docs_written", language_for(options), count=count, folder=options.out))
    return Exit.FOUND


def pages(
    known: Mapping[str, Cause], languages: list[str], form: str = "markdown"
) -> Iterator[tuple[Path, str]]:
    """Every page: its path below the docs folder, and its text."""
    for language in languages:
        topics = [topic(cause, language) for cause in known.values()]
        for story in topics:
            markdown = form == "markdown"
            text = story.to_markdown() if markdown else _page(story.to_html(), language)
            yield Path(language, "causes", story.name + SUFFIX[form]), text
        yield Path(language, f"index{SUFFIX[form]}"), _index(topics, form, language)


def _index(topics: list[Topic], form: str, language: str) -> str:
    lines = (
        f"- [{t.title}](causes/{t.name}{SUFFIX[form]}): {t.summary.markdown()}" for t in topics
    )
    text = "\n".join(lines) + "\n"
    return text if form == "markdown" else _page(passage(text).html(), language)


def _page(body: str, language: str) -> str:
    return f'<!doctype html>\n<html lang="{language}">\n<meta charset="utf-8">\n{body}\n</html>\n'
