"""What there is to tell of a cause without a live program, section by section."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..model import Edit
from . import texts as texts_module
from .commands import commands
from .diff import Hunk, hunks_of
from .labels import word
from .table import with_table
from .texts import NOTHING, Document, Passage

_ALIKE = 60  #: characters; messages that begin alike differ in their hints and details
_CELL = re.compile(r"\n# %%.*")
_ASIDE = re.compile(r"[ ]?[(（]\{(\w*place)\}[)）]")  #: a place in brackets
_NOWHERE = ("", "?")


@dataclass(frozen=True)
class Part:
    """A section with its heading; one of the last five fields holds its content."""

    key: str
    heading: str
    title: Passage = NOTHING
    body: Passage = NOTHING
    items: tuple[Passage, ...] = ()
    messages: tuple[str, ...] = ()
    cells: tuple[str, ...] = ()
    hunks: tuple[Hunk, ...] = ()


@dataclass(frozen=True)
class TopicContent:
    """A cause's texts with the facts of its own example, in a language.  It pickles.

    A fact that the example has no value for shows as its own name (`step`), a place in brackets
    not at all.
    `case` and `fixed` are the failing and the repaired program ("" where there is none), and
    `messages` those of PyTorch's that the cause explains.  `folder` is where `table.py` lies,
    which is run when the story is told.
    """

    name: str
    language: str
    texts: Mapping[str, str] = field(repr=False)
    example: Mapping[str, str] = field(default_factory=dict, repr=False)
    case: str = field(default="", repr=False)
    fixed: str = field(default="", repr=False)
    messages: tuple[str, ...] = field(default=(), repr=False)
    folder: Path | None = field(default=None, repr=False)

    @property
    def title(self) -> str:
        return self.heading.plain()

    @property
    def heading(self) -> Passage:
        """The title with its inline code."""
        return texts_module.line(self._document.title)

    @property
    def summary(self) -> Passage:
        return self._document.summary(self.facts)

    @property
    def facts(self) -> dict[str, str]:
        own = {name: value or name for name, value in self.example.items()}
        return {**commands(), **own}

    @property
    def see(self) -> tuple[Mapping[str, str], ...]:
        return self._document.see

    def parts(self) -> tuple[Part, ...]:
        """The sections in the order in which they are told."""
        return tuple(_parts(self, self._document))

    @property
    def _document(self) -> Document:
        document = texts_module.document(self.texts, self.language)
        sections = {name: _ASIDE.sub(self._aside, text) for name, text in document.sections.items()}
        return replace(document, sections=sections)

    def _aside(self, found: re.Match[str]) -> str:
        return "" if self.example.get(found[1], "?") in _NOWHERE else found[0]


def _parts(topic: TopicContent, document: Document) -> Iterator[Part]:
    language, facts = topic.language, topic.facts
    if topic.messages:
        told = tuple({message[:_ALIKE]: message for message in reversed(topic.messages)}.values())
        yield Part("message", word("message", language), messages=told[::-1])
    yield from _cause(document, facts, language)
    yield from _programs(topic)
    for fix in document.fixes():
        yield Part(
            f"fix {fix}",
            word("rewrite", language),
            title=document.fix_title(fix, facts),
            body=document.fix_reason(fix, facts),
        )
    for key in ("check", "warnings"):
        items = _all_items(document, key, facts)
        if items:
            yield Part(key, word(key, language), items=items)
    background = with_table(document.passage("background", None), topic.folder, language, facts)
    if background:
        yield Part("background", word("background", language), body=background)


def _all_items(document: Document, key: str, facts: Mapping[str, str]) -> tuple[Passage, ...]:
    """The list and those of its variants."""
    named = [name for name in document.sections if name == key or name.startswith(f"{key} ")]
    return tuple(item for name in named for item in document.items(name, facts))


def _cause(document: Document, facts: Mapping[str, str], language: str) -> Iterator[Part]:
    """Why; and where the cause has variants, a list of them under their own summaries."""
    if "cause" in document.sections:
        yield Part("cause", word("cause_heading", language), body=document.passage("cause", facts))
    variants = [n.removeprefix("cause ") for n in document.sections if n.startswith("cause ")]
    if variants:
        source = "\n".join(_bullet(document, variant) for variant in variants)
        body = texts_module.passage(source, facts)
        yield Part("variants", word("variant", language), body=body)


def _bullet(document: Document, variant: str) -> str:
    parts = (document.sections.get(f"{key} {variant}", "") for key in ("summary", "cause"))
    return "- " + "\n\n".join(filter(None, parts)).replace("\n", "\n  ")


def _programs(topic: TopicContent) -> Iterator[Part]:
    case, fixed = cells_of(topic.case), cells_of(topic.fixed)
    if case:
        key = "failing_program" if fixed else "example_program"
        yield Part("case", word(key, topic.language), cells=case)
    if case and len(case) == len(fixed):
        both = zip(case, fixed, strict=True)
        edits = (Edit(n, None, old, new) for n, (old, new) in enumerate(both, 1))
        hunks = tuple(hunk for edit in edits for hunk in hunks_of(edit))
        yield Part("fixed", word("repaired_program", topic.language), hunks=hunks)


def cells_of(program: str) -> tuple[str, ...]:
    """A notebook written as one file, cell by cell."""
    parts = _CELL.split(f"\n{program}")[1:]
    return tuple(part.strip("\n") for part in parts)
