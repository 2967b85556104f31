"""The report as data (`to_dict`, the contract) and as Markdown for pasting into an issue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..model import Diagnosis, Event, Place, Rewrite
from .diff import Hunk
from .fill import is_cjk
from .labels import source, word
from .markdown import code, escape, fence
from .texts import Document, Passage
from .view import RewriteView, View, outcome_reason
from .visible import visible

if TYPE_CHECKING:
    from rich.text import Text

    from .topic_content import Part, TopicContent

SCHEMA = 1
#: Of the report as data in a notebook's output.
MIMETYPE = "application/vnd.autograd-explain.v1+json"
#: Fields that a notebook's output lacks.
_BESIDE = frozenset(
    "message explanation warnings see shape dtype device is_leaf requires_grad grad_fn"
    " saved_version current_version span changed source function op version title reason"
    " outcome_reason edits chain".split()
)
#: What describes `to_dict`: a file of the package.
SCHEMA_FILE = Path(__file__).with_name("report.schema.json")


def to_dict(diagnosis: Diagnosis, view: View, document: Document) -> dict[str, Any]:
    """The report contract, schema 1: JSON types only."""
    finding = diagnosis.finding
    return {
        "schema": SCHEMA,
        "id": finding.cause,
        "kind": diagnosis.kind.value,
        "confidence": finding.confidence.name.lower(),
        "rank": diagnosis.rank,
        "message": diagnosis.message,
        "language": view.language,
        "headline": view.headline.plain(),
        "explanation": explanation(view),
        "tensors": [t.to_dict() for t in finding.tensors],
        "events": [e.to_dict() for e in _with_calls(finding.events)],
        "rewrites": [
            _rewrite_dict(rewrite, shown, view.language)
            for rewrite, shown in zip(diagnosis.rewrites, view.rewrites, strict=True)
        ],
        "warnings": [w.plain() for w in view.warnings],
        "see": [dict(s) for s in document.see],
    }


def _with_calls(events: Iterable[Event]) -> Iterator[Event]:
    """Behind an event in a file the same at the cell's line that called it, with the file's line
    `inside`, once."""
    told = set[Place]()
    for event in events:
        yield event
        calls = [p for p in event.chain if p.cell is not None]
        if calls and event.place is not None and event.place.file and event.place not in told:
            told.add(event.place)
            outer = event.chain[: event.chain.index(calls[-1])]
            yield replace(event, place=calls[-1], chain=outer, inside=event.place)


def _rewrite_dict(rewrite: Rewrite, shown: RewriteView, language: str) -> dict[str, Any]:
    return {
        "title": shown.title.plain(),
        "safety": rewrite.safety.value,
        "outcome": rewrite.outcome.value,
        "outcome_reason": outcome_reason(rewrite, language).plain(),
        "reason": {"key": rewrite.reason.key, "values": dict(rewrite.reason.values)},
        "edits": [edit.to_dict() for edit in rewrite.edits],
    }


def brief(report: Mapping[str, Any]) -> dict[str, Any]:
    """A report as a notebook's output holds it, where each number takes a line of the file:
    without what is null or empty, and what stands beside it (the story, PyTorch's message, what a
    tensor looks like, the lines' text, what a rewrite changes and why)."""
    found: dict[str, Any] = _known(report)
    return found


def _known(value: Any) -> Any:
    if isinstance(value, Mapping):
        known = {k: _known(v) for k, v in value.items() if k not in _BESIDE}
        return {k: v for k, v in known.items() if v not in (None, "", [], {})}
    return [_known(v) for v in value] if isinstance(value, (list, tuple)) else value


def explanation(view: View) -> str:
    """Why it happened; where no rewrite is honest, also what to look at."""
    parts = [view.why.markdown()]
    if not view.rewrites:
        parts += _bullets("check", view.check, view)
    return "\n\n".join(p for p in parts if p)


def to_markdown(diagnosis: Diagnosis, view: View) -> str:
    """The whole report in GitHub's Markdown."""
    parts = [
        f"### {view.headline.markdown()}",
        *_message(view),
        *_listing(view),
        view.why.markdown(),
        *(
            p
            for r, v in zip(diagnosis.rewrites, view.rewrites, strict=True)
            for p in _rewrite(r, v, view)
        ),
        *_bullets("check", view.check, view),
        *_bullets("warnings", view.warnings, view),
        *_see(view.see, view.language),
        *(note.markdown() for note in view.notes),
        f"<sub>{code('autograd_explain')} · {code(view.cause)}</sub>",
    ]
    return _page(parts)


def _page(parts: Iterable[str]) -> str:
    return visible("\n\n".join(part for part in parts if part)) + "\n"


def _message(view: View) -> Iterator[str]:
    if view.message:
        yield f"{word('message', view.language)}:"
        yield fence(view.message, "text")


def _listing(view: View) -> Iterator[str]:
    from .listing import listing, timeline

    lines: list[Text] = list(listing(view.rows, 96))
    picture = timeline(view.stops, word("version", view.language), 96) if view.stops else []
    shown = [t.plain.rstrip() for t in lines] + [""] * bool(picture) + [t.plain for t in picture]
    if shown:
        yield fence("\n".join(shown), "text")


def _rewrite(rewrite: Rewrite, shown: RewriteView, view: View) -> Iterator[str]:
    standing = [shown.outcome_word, shown.reason.markdown()]
    text = source("colon", view.language).join(s for s in standing if s)
    caution = f" · {shown.caution.markdown()}" if shown.caution else ""
    yield f"**{shown.heading}** {shown.title.markdown()} ({text}{caution})"
    yield shown.why.markdown()
    for edit in rewrite.edits:
        yield fence(edit.diff, "diff")


def _bullets(title: str, items: Sequence[Passage], view: View) -> Iterator[str]:
    if items:
        yield f"**{word(title, view.language)}**"
        yield _list(items)


def _list(items: Sequence[Passage]) -> str:
    return "\n".join(f"- {item.markdown()}" for item in items)


def _see(links: Sequence[Mapping[str, str]], language: str) -> Iterator[str]:
    if links:
        yield f"**{word('see', language)}**"
        yield _links(links)


def _links(links: Sequence[Mapping[str, str]]) -> str:
    return "\n".join(f"- [{escape(s['title'])}]({s['url']})" for s in links)


def topic_markdown(topic: TopicContent) -> str:
    """A topic as a page: `#` title, `##` sections."""
    parts = [f"# {topic.heading.markdown()}", topic.summary.markdown()]
    parts += [text for part in topic.parts() for text in _topic_part(part)]
    if topic.see:
        parts += [f"## {word('see', topic.language)}", _links(topic.see)]
    return _page(parts)


def _topic_part(part: Part) -> Iterator[str]:
    title = f" {part.title.markdown()}" if part.title else ""
    between = "：" if title and is_cjk(part.heading[-1]) else ":" if title else ""
    yield f"## {part.heading}{between}{title if between != '：' else title[1:]}"
    yield "\n".join(f"- {code(message)}" for message in part.messages)
    yield part.body.markdown()
    yield _list(part.items)
    if part.cells:
        cells = (f"# In[{n}]\n{cell}" for n, cell in enumerate(part.cells, 1))
        yield fence("\n\n".join(cells), "python")
    if part.hunks:
        yield fence("\n".join(_diff_lines(part.hunks)), "diff")


def _diff_lines(hunks: Sequence[Hunk]) -> Iterator[str]:
    for number, hunk in enumerate(hunks):
        if not number or hunk.where != hunks[number - 1].where:
            yield f"@@ {hunk.where} @@"
        yield from (f"{line.sign}{line.text}" for line in hunk.lines)
