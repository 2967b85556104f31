"""The pages of the site, and what is wrong with them."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from ..model import Diagnosis
from ..render import Explanation
from ..render.html import environment, prose
from ..render.labels import word
from ..render.lint import problems
from ..render.texts import LANGUAGES, line, load
from ..render.visible import visible
from ..search.causes import Cause
from ..search.find import templates, topic
from .code import highlighted, style
from .guides import FOLDER, Guide, guides, pictures
from .links import dead_links
from .played import played
from .words import NAMES, say

_STYLE = re.compile(r"<style>.*?</style>", re.DOTALL)


@dataclass
class DocsSite:
    """What was written: the number of pages, and everything that is wrong with them."""

    pages: int = 0
    problems: list[str] = field(default_factory=list)


def build(
    out: Path,
    known: Mapping[str, Cause],
    languages: Iterable[str] = LANGUAGES,
    folder: Path = FOLDER,
    verify: bool = True,
) -> DocsSite:
    """Write the site of these causes to `out`; `folder` holds the guides.

    Without `verify` the rewrites are shown, but not tried, which is quicker.
    """
    site, languages = DocsSite(), tuple(languages)
    out.mkdir(parents=True, exist_ok=True)
    diagnoses = played(known.values(), verify)
    site.problems += _unexplained(known.values(), diagnoses)
    for cause in known.values():
        site.problems += (f"{cause.name}: {p}" for p in problems(cause.folder, cause.example))
    shared = _shared(tuple(known.values()), languages, tuple(guides(folder)))
    for path, text in _pages(shared, diagnoses):
        target = out / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(visible(text), "utf-8")
        site.pages += 1
    for picture in pictures(folder):
        (out / picture).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder / picture, out / picture)
    site.problems += dead_links(out)
    return site


def _unexplained(
    causes: Iterable[Cause], diagnoses: Mapping[str, Diagnosis | None]
) -> Iterator[str]:
    for cause in causes:
        if not (cause.folder / "case.py").exists():
            continue
        diagnosis = diagnoses.get(cause.name)
        if diagnosis is None:
            yield f"{cause.name}: its case.py is not explained"
        elif diagnosis.finding.cause != cause.name:
            yield f"{cause.name}: its case.py is explained as {diagnosis.finding.cause}"


# -- pages --------------------------------------------------------------------------------


def _shared(
    causes: tuple[Cause, ...], languages: tuple[str, ...], written: tuple[Guide, ...]
) -> dict[str, Any]:
    """What every page needs."""
    return {"causes": causes, "languages": languages, "guides": written, "names": NAMES}


def _pages(
    shared: Mapping[str, Any], diagnoses: Mapping[str, Diagnosis | None]
) -> Iterator[tuple[Path, str]]:
    yield Path("style.css"), _style()
    yield Path("index.html"), _fill("home.html", "en", "", "index.html", shared)
    for guide in shared["guides"]:
        path = f"{guide.name}.html"
        yield Path(path), _fill("guide.html", "en", "", path, shared, guide=guide)
    for language in shared["languages"]:
        yield from _of_language(language, shared, diagnoses)


def _of_language(
    language: str, shared: Mapping[str, Any], diagnoses: Mapping[str, Diagnosis | None]
) -> Iterator[tuple[Path, str]]:
    causes: tuple[Cause, ...] = shared["causes"]
    titles = {c.name: line(c.document(language).title).plain() for c in causes}
    for name, listed in (
        ("index", _contents(causes, language)),
        ("messages", _messages(causes)),
        ("symptoms", _symptoms(causes, language)),
    ):
        path = f"{name}.html"
        text = _fill(path, language, "../", path, shared, listed=listed, titles=titles)
        yield Path(language, path), text
    for cause in causes:
        path = f"causes/{cause.name}.html"
        values = _cause_values(cause, language, diagnoses.get(cause.name))
        yield Path(language, path), _fill("cause.html", language, "../../", path, shared, **values)


def _contents(causes: Iterable[Cause], language: str) -> dict[str, list[Any]]:
    """Topics that one may look up, those with a message and those without."""
    found: dict[str, list[Any]] = {"causes": [], "topics": []}
    for cause in causes:
        found["causes" if cause.patterns else "topics"].append(topic(cause, language))
    return found


def _messages(causes: Iterable[Cause]) -> list[tuple[str, list[str]]]:
    """Every message in alphabetical order, with the causes that may explain it."""
    found: dict[str, list[str]] = {}
    for cause in causes:
        for text in templates(cause):
            found.setdefault(" ".join(text.split()), []).append(cause.name)
    return sorted(found.items(), key=lambda item: item[0].lower())


def _symptoms(causes: Iterable[Cause], language: str) -> list[tuple[str, tuple[str, ...]]]:
    """How people ask, cause by cause."""
    return [(c.name, tuple(map(str, c.document(language).questions))) for c in causes]


def _cause_values(cause: Cause, language: str, diagnosis: Diagnosis | None) -> dict[str, Any]:
    explained = "" if diagnosis is None else _report(diagnosis, language, load(cause.folder))
    return {
        "topic": topic(cause, language),
        "questions": cause.document(language).questions,
        "report": Markup(explained),
    }


def _report(diagnosis: Diagnosis, language: str, texts: Mapping[str, str]) -> str:
    """What the notebook shows; its style sheet is part of the site's."""
    return _STYLE.sub("", Explanation(diagnosis, language, texts=texts).to_html())


def _style() -> str:
    """The site's style sheet with that of the reports and of the programs."""
    from ..render.html import style as of_reports

    loader = _environment().loader
    assert loader is not None
    own = loader.get_source(_environment(), "site.css")[0]
    return f"{own}\n{style()}\n{of_reports()}\n"


@cache
def _environment() -> Environment:
    made = environment(__package__)
    made.filters["highlighted"] = lambda code: Markup(highlighted(code))
    made.filters["line"] = lambda source: prose(line(source))
    return made


def _fill(
    template: str, language: str, root: str, path: str, shared: Mapping[str, Any], **values: Any
) -> str:
    """A page; `path` is its address below its language, `root` leads from it to the top."""
    return (
        _environment()
        .get_template(template)
        .render(
            language=language,
            root=root,
            path=path,
            say=lambda key: say(key, language),
            word=lambda key: word(key, language),
            **shared,
            **values,
        )
    )
