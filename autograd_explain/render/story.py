"""A topic for a terminal, and as plain text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from .listing import diff
from .prose import code_lines, indented, one_line, paragraphs
from .text import bullets, framed, section, see_also, spaced
from .topic_content import Part, TopicContent
from .wrap import wrap


def story(topic: TopicContent, width: int) -> Text:
    """All sections between two rules."""
    blocks = [
        wrap(Text(topic.title, "bold"), width),
        wrap(one_line(topic.summary), width),
        *(_part(part, topic.language, width) for part in topic.parts()),
        see_also(topic.see, topic.language),
    ]
    lines = [line for block in blocks for line in spaced(block)]
    return framed(lines[1:], topic.name, width)


def _part(part: Part, language: str, width: int) -> Iterator[Text]:
    if part.items:
        yield from bullets(part.heading, part.items, language, width)
        return
    if part.title:
        title = Text.assemble((part.heading, "bold green"), "  ", one_line(part.title, "bold"))
        yield from wrap(title, width)
        yield from indented(_content(part, width - 2), "  ")
    else:
        yield from section(part.heading, _content(part, width - 2))


def _content(part: Part, width: int) -> Iterator[Text]:
    for message in part.messages:
        yield from indented(wrap(Text(message), width - 2), "• ", "  ")
    yield from paragraphs(part.body, width)
    yield from _cells(part.cells)
    yield from diff(part.hunks, width)


def _cells(cells: Sequence[str]) -> Iterator[Text]:
    """Programs uncut: they are there to be copied."""
    for number, cell in enumerate(cells, 1):
        yield Text(f"In[{number}]", "dim")
        lines = code_lines(cell)
        size = len(str(len(lines)))
        for count, line in enumerate(lines, 1):
            yield Text.assemble((f"{count:>{size}} │ ", "dim"), line)
