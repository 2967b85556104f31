"""`docs`: the site as HTML, or a Markdown page per entry and language."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..render.texts import LANGUAGES
from ..render.topic import Topic
from ..search.causes import Cause, causes
from ..search.find import topic
from ..search.words import say
from .exit import Exit


def run(options: argparse.Namespace) -> int:
    from . import language_for

    known = causes(tuple(options.causes))
    languages = [options.lang] if options.lang else list(LANGUAGES)
    if options.format == "html":
        return _site(options.out, known, languages, language_for(options))
    count = 0
    for path, text in pages(known, languages):
        target = options.out / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")
        count += 1
    print(say("docs_written", language_for(options), count=count, folder=options.out))
    return Exit.FOUND


def _site(out: Path, known: Mapping[str, Cause], languages: list[str], language: str) -> int:
    """Warnings are errors: a site with a problem is written, and the command fails."""
    from ..docs import build

    site = build(out, known, languages)
    for problem in site.problems:
        print(problem, file=sys.stderr)
    print(say("docs_written", language, count=site.pages, folder=out))
    return Exit.NOTHING if site.problems else Exit.FOUND


def pages(known: Mapping[str, Cause], languages: list[str]) -> Iterator[tuple[Path, str]]:
    """Every Markdown page: its path below the folder, and its text."""
    for language in languages:
        topics = [topic(cause, language) for cause in known.values()]
        for story in topics:
            yield Path(language, "causes", f"{story.name}.md"), story.to_markdown()
        yield Path(language, "index.md"), _index(topics)


def _index(topics: list[Topic]) -> str:
    lines = (f"- [{t.title}](causes/{t.name}.md): {t.summary.markdown()}" for t in topics)
    return "\n".join(lines) + "\n"
