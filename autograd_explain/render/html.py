"""The report as HTML for notebooks.

No script; colours come from Jupyter's CSS variables with fallbacks, tints are translucent and
so fit light and dark themes alike (`prefers-color-scheme` would follow the system, not the
notebook).  Jinja escapes everything; a Passage's HTML is escaped by the Markdown renderer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from html import unescape
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from rich.cells import cell_len

from .code_html import code_html
from .diff import Hunk, Line
from .labels import source, word
from .listing import GLYPHS, WIDEST_NAME, crop_middle, window
from .rails import Rail
from .rows import Row
from .texts import NOTHING, Passage
from .view import View
from .visible import visible

if TYPE_CHECKING:
    from .look_content import LookContent
    from .topic_content import TopicContent

LONGEST = 96  #: cells of one line of code
LANE = 14  #: pixels
_MIDDLE = 13  #: of a row's first line
_FAR = 999  #: below any row, where the picture is cut off
ROOM = 12  #: lines of code that leave room for the reason
_FROM_THE_RIGHT = re.compile(
    "<code>(?=[^<]*[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefe\U00010800-\U00010fff])"
)
#: An attribute of ours that needs no quotes, each of which a notebook's JSON writes as two
#: characters.  Quotes of the user's are escaped.
_QUOTED = re.compile(r'(?<= )(class|dir|aria-hidden|target)="([\w.%-]+)"(?=[ >])')
_STYLE = "<style></style>"
_PIECE = re.compile("<[^>]*>|[^<]+")
_QUOTE = re.compile("&(?:quot|#34|#39|#x27);")
_CLASS = re.compile(r'(?<= class=)("[^"]*"|[^ >]+)')
_NAMED = re.compile(r"(?:\.|& )([a-z_]\w*)")
_TAG = re.compile(r"<(\w+)")
_COMMA = re.compile(r",(?![^(]*\))")
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
STYLES = {"verified": "_ok", "runs": "_ok", "fails": "_bad"}
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
    made.filters |= {"prose": prose, "python": code_html, "code": _code, "place": _padded_place}
    made.filters["number"] = _number
    made.filters["picture"] = _picture
    made.globals["glyphs"] = GLYPHS
    return made


def prose(passage: Passage) -> Markup:
    """A passage's HTML, which is escaped already; code stays apart from the text around it where
    it has letters that are read from the right."""
    return Markup(_FROM_THE_RIGHT.sub('<code dir="ltr">', passage.html()))


def _code(row: Row) -> Markup:
    return code_html(row.source, row.start, row.end)


def _place(row: Row) -> str:
    return row.where if row.line is None else f"{row.where}:{row.line}"


def _padded_place(row: Row, gutter: int) -> str:
    place = _place(row)
    return place + " " * (gutter - cell_len(place))


def _number(line: Line, hunks: Sequence[Hunk]) -> str:
    """A line's number, set right among those of its rewrite."""
    widest = max(other.number for hunk in hunks for other in hunk.lines)
    return str(line.number).rjust(len(str(widest)))


def _picture(rail: Rail) -> Markup:
    """The graph beside a line: without text, as its line tells what it means."""
    x = [_at(lane) for lane in range(rail.width)]
    lines = [f"M{x[lane]},0V{_FAR if lane in rail.below else _MIDDLE}" for lane in rail.above]
    begun = (lane for lane in rail.below if lane not in rail.above)
    lines += (f"M{x[lane]},{_MIDDLE}V{_FAR}" for lane in begun)
    mark = ""
    if rail.lane is not None:
        own = x[rail.lane]
        lines += (f"M{x[lane]},{_MIDDLE}H{own}" for lane in rail.joins if lane != rail.lane)
        mark = f"<circle cx={own} cy={_MIDDLE} r=4 />"
    drawn = f"<path d={''.join(lines)} />" if lines else ""
    return Markup(f"<svg>{drawn}{mark}</svg>")


def _at(lane: int) -> int:
    return LANE * lane + LANE // 2


def fill(template: str, language: str, **values: Any) -> str:
    """A template with the labels of a language at hand, and the styles that it needs."""
    page = environment().get_template(template)

    def words(key: str, **facts: object) -> str:
        return word(key, language, **facts)

    text = visible(page.render(word=words, language=language, **values).strip())
    short = _PIECE.sub(lambda found: _shorter(found[0]), text)
    return short.replace(_STYLE, f"<style>{_style_of(short)}</style>")


def _shorter(piece: str) -> str:
    """A tag without quotes that it does not need, or a text with its quotes as they are."""
    if piece.startswith("<"):
        return _QUOTED.sub(r"\1=\2", piece)
    return _QUOTE.sub(lambda found: unescape(found[0]), piece)


def style() -> str:
    """The whole style sheet."""
    return "".join(_rules())


def _style_of(report: str) -> str:
    """The rules for the classes and the tags that a report uses.

    Every report has its own: an output may be cleared, or taken out of the page while it is
    scrolled away, with the styles in it.
    """
    used = {name for names in _CLASS.findall(report) for name in names.strip('"').split()}
    used |= set(_TAG.findall(report))
    return "".join(_for(used, rule) for rule in _rules())


def _for(used: set[str], rule: str) -> str:
    """A rule with those of its selectors that ask for nothing, or for one of these."""
    selectors, brace, rest = rule.partition("{")
    asked = ((part, set(_NAMED.findall(part))) for part in _COMMA.split(selectors))
    kept = [part for part, names in asked if not names or names & used]
    return ",".join(kept) + brace + rest if kept else ""


@cache
def _rules() -> tuple[str, ...]:
    """The style sheet's lines."""
    loader = environment().loader
    assert loader is not None
    css = _COMMENT.sub("", loader.get_source(environment(), "style.css")[0])
    return tuple(line for line in css.splitlines() if line)


def html(view: View, detail: str = "short") -> str:
    """The report; what a short report leaves out is folded, not missing, but for what to read
    further and long cells, which a magic gives."""
    rows = tuple(map(_cropped, view.rows))
    gutter, widest = _gutter(rows)
    brief = view.why.first_paragraph() if _has_room(view) else NOTHING
    return fill(
        "explanation.html",
        view.language,
        view=view,
        rows=rows,
        gutter=gutter,
        widest=widest,
        brief=brief,
        rest=view.why.after(brief),
        more=tuple(_more(view, detail == "full")),
        opened=detail == "full",
        standing=STANDING,
        styles=STYLES,
        colon=source("colon", view.language),
    )


def _more(view: View, full: bool) -> Iterator[str]:
    """What the folded part holds, by its headings."""
    if view.rewrites and view.rewrites[0].why:
        yield word("about_rewrite", view.language)
    if view.rewrites:
        yield from (name for name, _ in view.rewrites[0].cells)
    if view.rewrites[1:]:
        yield word("other_rewrites", view.language, count=len(view.rewrites) - 1)
    held = {
        "check": view.rewrites and view.check,
        "warnings": view.warnings,
        "tensors": view.tensors,
        "see": full and view.see,  # else the whole story has them
    }
    yield from (word(key, view.language) for key, content in held.items() if content)


def _has_room(view: View) -> bool:
    """Whether a paragraph more still fits under a traceback."""
    shown = view.rewrites[0].hunks if view.rewrites else ()
    return len(view.rows) + sum(len(hunk.lines) for hunk in shown) <= ROOM


def _cropped(row: Row) -> Row:
    """A very long line is cut around the expression meant; a long file name in its middle."""
    source, start, end = window(row.source, row.start, row.end, LONGEST)
    where = crop_middle(row.where, WIDEST_NAME)
    return replace(row, source=source, start=start, end=end, where=where)


def look_html(shown: LookContent) -> str:
    """What a magic that looks at living objects shows."""
    pictures = [(picture, _gutter(picture.rows)) for picture in shown.pictures]
    return fill("look.html", shown.language, shown=shown, pictures=pictures)


def _gutter(rows: Sequence[Row]) -> tuple[int, int]:
    """Cells of the places, and of the widest line."""
    gutter = max((cell_len(_place(row)) for row in rows), default=0) + 2
    return gutter, 1 + max((cell_len(row.source) for row in rows), default=0)


def repeated_html(parts: Sequence[Passage], whole: str, language: str) -> str:
    """A line for a report that was shown before, which is folded below it where it is given."""
    return fill("repeated.html", language, parts=parts, whole=Markup(whole))


def topic_html(topic: TopicContent) -> str:
    """A topic's whole story."""
    return fill("topic.html", topic.language, topic=topic, parts=topic.parts())
