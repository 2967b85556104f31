"""The texts of a cause: one Markdown file per language, sections by fixed `##` names.

A `Document` is a file as read; a `Passage` is one of its sections, parsed, with the facts filled
in.  Facts enter the token tree *after* parsing, so nothing in a user's name or code is ever read
as Markdown.  A sentence whose fact is unknown is left out: better short than wrong.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import frontmatter
from markdown_it import MarkdownIt
from markdown_it.token import Token

from .fill import fill_tokens

LANGUAGES = ("en", "ja", "zh")
_SECTION = re.compile(r"##[ \t]+(.+?)[ \t#]*\Z")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_REVISION = re.compile(r"^english:.*$", re.MULTILINE)


@cache
def parser() -> MarkdownIt:
    """The one Markdown dialect of the project: CommonMark with tables, without raw HTML."""
    return MarkdownIt("commonmark", {"html": False}).enable("table")


@dataclass(frozen=True, eq=False)
class Passage:
    """Markdown, parsed and filled.  `inline` passages are one line without a paragraph."""

    tokens: tuple[Token, ...] = ()
    inline: bool = False

    def __bool__(self) -> bool:
        return bool(self.tokens)

    def html(self) -> str:
        """HTML in which everything that is not ours is escaped."""
        renderer: Any = parser().renderer
        return str(renderer.render(list(self.tokens), parser().options, {})).strip()

    def markdown(self) -> str:
        from .markdown import markdown_of

        return markdown_of(self.tokens)

    def plain(self) -> str:
        """One line of plain text; code keeps its backticks."""
        return " ".join("".join(_plain(t) for t in self.tokens if t.children).split())

    def then(self, more: Passage) -> Passage:
        """This line with another at its end."""
        parts = [child for t in (*self.tokens, *more.tokens) for child in t.children or ()]
        return Passage((replace(self.tokens[0], children=parts),), inline=True)

    def first_paragraph(self) -> Passage:
        """Up to the end of the first block."""
        for number, token in enumerate(self.tokens, 1):
            if token.level == 0 and token.nesting <= 0:
                return Passage(self.tokens[:number], self.inline)
        return self

    def after(self, start: Passage) -> Passage:
        """What follows its own beginning."""
        return Passage(self.tokens[len(start.tokens) :], self.inline)


NOTHING = Passage()


def _plain(token: Token) -> str:
    return "".join(
        f"`{t.content}`" if t.type == "code_inline" else t.content for t in token.children or ()
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """markdown-it tells the root logger, for debugging, of every rule that it enters."""
    logger = logging.getLogger("markdown_it")
    if not logger.isEnabledFor(logging.DEBUG):
        yield  # another level would empty the caches of all loggers there are
        return
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)


def passage(source: str, facts: Mapping[str, str] | None = None) -> Passage:
    """Blocks of Markdown with the facts filled in (`None`: placeholders stay as they are)."""
    with _quiet():
        tokens = parser().parse(source)
    return Passage(tuple(tokens if facts is None else fill_tokens(tokens, facts)))


def line(source: str, facts: Mapping[str, str] | None = None) -> Passage:
    """One line of Markdown (a title, a label) with the facts filled in."""
    with _quiet():
        tokens = parser().parseInline(source.strip())
    tokens = tokens if facts is None else fill_tokens(tokens, facts)
    return Passage(tuple(t for t in tokens if t.children), inline=True)


@dataclass(frozen=True)
class Document:
    """A text file: its front matter, and its sections' Markdown by name.

    `needs` are the facts that prove a section, by its name: without them it is not there, and what
    would have been told by it is told by the general section or not at all.
    """

    title: str
    sections: Mapping[str, str]
    see: tuple[Mapping[str, str], ...] = ()
    questions: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    english: str = ""
    needs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    meta: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def source(
        self, section: str, variant: str = "", facts: Mapping[str, str] | None = None
    ) -> str:
        """The Markdown of `section <variant>` or else of `section`; "" where there is none.

        Of sections that need a fact only those are meant whose facts are known (`None`: all are).
        """
        return next(self._sources(section, variant, facts), "")

    def _sources(
        self, section: str, variant: str, facts: Mapping[str, str] | None
    ) -> Iterator[str]:
        for name in dict.fromkeys((f"{section} {variant}".strip(), section)):
            if facts is None or all(facts.get(need) for need in self.needs.get(name, ())):
                yield from filter(None, [self.sections.get(name)])

    def passage(self, section: str, facts: Mapping[str, str] | None, variant: str = "") -> Passage:
        return passage(self.source(section, variant, facts), facts)

    def summary(self, facts: Mapping[str, str], variant: str = "") -> Passage:
        """The headline; the title where the facts for a headline are missing."""
        texts = (" ".join(s.split()) for s in self._sources("summary", variant, facts))
        return next(filter(None, (line(text, facts) for text in texts)), line(self.title))

    def fix_title(self, fix: str, facts: Mapping[str, str]) -> Passage:
        """The first line of `## fix <fix>`; the fix's own name where that cannot be filled."""
        title, _ = split_title(self.sections.get(f"fix {fix}", ""))
        return line(title, facts) or line(fix.replace("_", " ").replace("-", " "))

    def fix_reason(self, fix: str, facts: Mapping[str, str]) -> Passage:
        _, reason = split_title(self.sections.get(f"fix {fix}", ""))
        return passage(reason, facts)

    def items(
        self, section: str, facts: Mapping[str, str], variant: str = ""
    ) -> tuple[Passage, ...]:
        """The entries of a section that is a bullet list, each one a line."""
        return tuple(
            Passage((token,), inline=True)
            for token in self.passage(section, facts, variant).tokens
            if token.type == "inline"
        )

    def fixes(self) -> tuple[str, ...]:
        return tuple(n.removeprefix("fix ") for n in self.sections if n.startswith("fix "))


def split_title(section: str) -> tuple[str, str]:
    """A fix section's title line and the rest."""
    title, _, rest = section.strip().partition("\n")
    return title.strip(), rest.strip()


@lru_cache(maxsize=256)
def read(text: str) -> Document:
    """A text file's content as a Document."""
    post = frontmatter.loads(text)
    meta = post.metadata
    return Document(
        title=str(meta.get("title", "")),
        sections=_sections(post.content),
        see=tuple({k: str(v) for k, v in dict(s).items()} for s in _list(meta.get("see"))),
        questions=tuple(map(str, _list(meta.get("questions")))),
        documents=tuple(map(str, _list(meta.get("documents")))),
        english=str(meta.get("english", "")),
        needs=_lists(meta.get("needs")),
        meta=meta,
    )


def _list(value: Any) -> Iterable[Any]:
    return value if isinstance(value, list) else ()


def _lists(value: Any) -> dict[str, tuple[str, ...]]:
    named = value.items() if isinstance(value, dict) else ()
    return {str(name): tuple(map(str, _list(given))) for name, given in named}


def _sections(body: str) -> dict[str, str]:
    """Split at `## ` lines outside fences."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    fence = ""
    for text in body.splitlines():
        mark = _FENCE.match(text)
        if mark and (not fence or (mark[1].startswith(fence) and not text.strip(" `~"))):
            fence = "" if fence else mark[1]
        heading = None if fence else _SECTION.match(text)
        if heading:
            lines = found.setdefault(heading[1], [])
        else:
            lines.append(text)
    return {name: "\n".join(part).strip() for name, part in found.items()}


def load(folder: Path) -> dict[str, str]:
    """The text files of a cause by language, as they stand on disk."""
    paths = {language: folder / f"{language}.md" for language in LANGUAGES}
    return {lang: path.read_text("utf-8") for lang, path in paths.items() if path.exists()}


def document(texts: Mapping[str, str], language: str) -> Document:
    """The text in `language`, else in English, else in any language there is.

    Links that a translation leaves out are those of the English text, and so is what its sections
    need.
    """
    found = read(texts.get(language) or texts.get("en") or next(iter(texts.values()), ""))
    english = read(texts.get("en", ""))
    return replace(found, see=found.see or english.see, needs=english.needs)


def revision(english: bytes) -> str:
    """What ja.md and zh.md carry as `english`: the revision of en.md that they translate."""
    return f"sha256:{hashlib.sha256(english).hexdigest()[:12]}"


def accept(folder: Path, language: str) -> bool:
    """Write the revision of en.md into `<language>.md`; False where it stood there already.

    To be called once the translation has been brought in step with the English text.
    """
    path = folder / f"{language}.md"
    text = path.read_text("utf-8")
    entry = f'english: "{revision((folder / "en.md").read_bytes())}"'
    head, mark, body = text.partition("\n---")
    if not text.startswith("---") or not mark:
        raise ValueError(f"{path} has no front matter")
    head, found = _REVISION.subn(entry, head, count=1)
    new = f"{head if found else head + chr(10) + entry}{mark}{body}"
    if new == text:
        return False
    path.write_text(new, "utf-8")
    return True
