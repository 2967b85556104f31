"""The report as HTML for notebooks.

No script; colours come from Jupyter's CSS variables with fallbacks, tints are translucent and
so fit light and dark themes alike (`prefers-color-scheme` would follow the system, not the
notebook).  Jinja escapes everything; a Passage's HTML is escaped by the Markdown renderer.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from .labels import label, source, word
from .listing import WIDEST_NAME, crop_middle, window
from .picture import svg
from .rows import Row
from .texts import NOTHING, Passage
from .view import View
from .visible import visible

if TYPE_CHECKING:
    from .topic_content import TopicContent

LONGEST = 96  #: cells of one line of code
ROOM = 12  #: lines of code that leave room for the reason
BESIDE = 44  #: characters of code that leave room for a label at its side
STANDING = {"verified": "✓", "runs": "○", "differs": "≠", "fails": "✗", "not_tried": "·"}


@cache
def environment(package: str = __package__) -> Environment:
    """The templates of a package, with what every page of ours is filled in by."""
    made = Environment(
        loader=PackageLoader(package),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    made.filters["prose"] = prose
    return made


def prose(passage: Passage) -> Markup:
    """A passage's HTML, which is escaped already."""
    return Markup(passage.html())


def fill(template: str, language: str, **values: Any) -> str:
    """A template with the style sheet and the labels of a language at hand."""
    page = environment().get_template(template)

    def words(key: str, **facts: object) -> str:
        return word(key, language, **facts)

    text = page.render(word=words, language=language, style=Markup(style()), **values)
    return visible(text.strip())


@cache
def style() -> str:
    """The style sheet on few lines."""
    loader = environment().loader
    assert loader is not None
    css = loader.get_source(environment(), "style.css")[0]
    lines = (line.split("/*")[0].strip() for line in css.splitlines())
    return "".join(line for line in lines if line)


def html(view: View, detail: str = "short") -> str:
    """The report; what a short report leaves out is folded, not missing."""
    picture = ""
    if view.stops:
        title = label("timeline_alt", view.language, name=view.culprit).plain().replace("`", "")
        picture = svg(view.stops, title, word("version", view.language))
    rows = tuple(map(_cropped, view.rows))
    brief = view.why.first_paragraph() if _has_room(view) else NOTHING
    return fill(
        "explanation.html",
        view.language,
        view=view,
        rows=rows,
        brief=brief,
        rest=view.why.after(brief),
        opened=detail == "full",
        beside=all(len(row.source) <= BESIDE for row in rows),
        picture=Markup(picture),
        standing=STANDING,
        colon=source("colon", view.language),
    )


def _has_room(view: View) -> bool:
    """Whether a paragraph more still fits under a traceback."""
    shown = view.rewrites[0].hunks if view.rewrites else ()
    return len(view.rows) + sum(len(hunk.lines) for hunk in shown) <= ROOM


def _cropped(row: Row) -> Row:
    """A very long line is cut around the expression meant; a long file name in its middle."""
    source, start, end = window(row.source, row.start, row.end, LONGEST)
    where = crop_middle(row.where, WIDEST_NAME)
    return replace(row, source=source, start=start, end=end, where=where)


def topic_html(topic: TopicContent) -> str:
    """A topic's whole story."""
    return fill("topic.html", topic.language, topic=topic, parts=topic.parts())
