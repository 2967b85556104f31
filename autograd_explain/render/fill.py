"""Facts into parsed Markdown: in text and inline code, never in fences.

A sentence that needs an unknown fact is dropped.  Where nothing of a block would be left, the
block stays and shows `…` in place of the fact (a single line is dropped: it has a title to fall
back to).
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from markdown_it.token import Token

PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9_]*)\}")
LONGEST = 100  #: characters of one fact: a headline is not the place for a whole statement
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])[」』）]*")
_CJK = (("\u2e80", "\u9fff"), ("\uf900", "\ufaff"), ("\ufe30", "\ufe4f"), ("\uff00", "\uffef"))
_WIDE_MARKS = frozenset("、。，．：；！？）」』】（「『【")
_FILLED = ("text", "code_inline")
_DOTS = re.compile(r"… ?\(?\d*\Z")


def fill_tokens(tokens: Sequence[Token], facts: Mapping[str, str]) -> list[Token]:
    """The tokens with facts in place of `{placeholders}`; sentences that lack one are gone."""
    known = {name: _one_line(value) for name, value in facts.items() if value.strip()}
    strict = _without_empty_blocks([_fill_block(t, known, drop=True) for t in tokens])
    if strict or len(tokens) <= 1:
        return strict
    return [_fill_block(t, known, drop=False) for t in tokens]


def placeholders(tokens: Iterable[Token]) -> set[str]:
    """The names of the placeholders that filling would look at."""
    return {name for token in tokens for name in _names(token.children or ())}


def _one_line(value: str) -> str:
    value = " ".join(_without_comment(value).split())
    # Cut where "… (12)" ends a list of names, it has its dots already.
    return value if len(value) <= LONGEST else _DOTS.sub("", value[: LONGEST - 1]) + "…"


def _without_comment(value: str) -> str:
    """A statement without the remark at its end; `"#"` in a string is none."""
    if "#" not in value or "\n" in value.strip():
        return value
    try:
        ast.parse(value.strip())
    except (SyntaxError, ValueError):
        return value
    tokens = tokenize.generate_tokens(io.StringIO(value.strip()).readline)
    start = next((t.start[1] for t in tokens if t.type == tokenize.COMMENT), len(value))
    return value.strip()[:start].rstrip() or value


def _fill_block(token: Token, facts: Mapping[str, str], drop: bool) -> Token:
    if token.type != "inline" or not token.children:
        return token
    children = _merged(joined_lines(token.children))
    sentences = _sentences(children) if drop else [children]
    kept = [s for s in sentences if not drop or _names(s) <= facts.keys()]
    filled = [_fill(t, facts) for s in kept for t in s]
    return replace(token, children=_trimmed(filled), content="")


def _names(tokens: Iterable[Token]) -> set[str]:
    return {n for t in tokens if t.type in _FILLED for n in PLACEHOLDER.findall(t.content)}


def _fill(token: Token, facts: Mapping[str, str]) -> Token:
    if token.type not in _FILLED:
        return token
    content = PLACEHOLDER.sub(lambda m: facts.get(m[1], "…"), token.content)
    return replace(token, content=content)


def _sentences(children: Iterable[Token]) -> list[list[Token]]:
    """Groups of tokens; a sentence ends only outside emphasis and links."""
    found: list[list[Token]] = [[]]
    depth = 0
    for token in children:
        depth += token.nesting
        if token.type != "text" or depth:
            found[-1].append(token)
            continue
        first, *rest = _split_keeping_space(token.content)
        found[-1].append(replace(token, content=first))
        found.extend([replace(token, content=part)] for part in rest)
    return found


def _merged(children: Iterable[Token]) -> list[Token]:
    """Neighbouring texts as one: a sentence may end where a line of the source does."""
    found: list[Token] = []
    for token in children:
        if found and token.type == found[-1].type == "text":
            found[-1] = replace(found[-1], content=found[-1].content + token.content)
        else:
            found.append(token)
    return found


def _split_keeping_space(text: str) -> list[str]:
    cuts = [m.end() for m in _SENTENCE_END.finditer(text)]
    return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def joined_lines(children: Sequence[Token]) -> Iterator[Token]:
    """A line break in the source is a space, and nothing at all between CJK characters."""
    for number, token in enumerate(children):
        if token.type != "softbreak":
            yield token
            continue
        before = children[number - 1].content if number else ""
        after = children[number + 1].content if number + 1 < len(children) else ""
        yield replace(token, type="text", tag="", content="" if _glued(before, after) else " ")


def _glued(before: str, after: str) -> bool:
    """Whether two lines are joined without a space: CJK on both sides, or its punctuation."""
    last, first = before[-1:], after[:1]
    if last in _WIDE_MARKS or first in _WIDE_MARKS:
        return True
    return bool(last and first) and is_cjk(last) and is_cjk(first)


def is_cjk(char: str) -> bool:
    """Whether a character belongs to text that is written without spaces."""
    return any(low <= char <= high for low, high in _CJK)


def _trimmed(children: list[Token]) -> list[Token]:
    children = [t for t in children if t.type != "text" or t.content]
    if children and children[-1].type == "text":
        children[-1] = replace(children[-1], content=children[-1].content.rstrip())
    if children and children[0].type == "text":
        children[0] = replace(children[0], content=children[0].content.lstrip())
    return children


def _without_empty_blocks(tokens: list[Token]) -> list[Token]:
    """Drop inlines that lost all their text, then the paragraphs and items around them."""
    kept = [t for t in tokens if t.type != "inline" or t.children]
    if len(kept) == len(tokens):
        return tokens
    while True:
        empty = next((i for i in range(len(kept) - 1) if _empty_pair(kept[i], kept[i + 1])), None)
        if empty is None:
            return kept
        del kept[empty : empty + 2]


def _empty_pair(first: Token, second: Token) -> bool:
    stem = first.type.removesuffix("_open")
    return first.type != stem and stem not in ("td", "th", "tr") and second.type == f"{stem}_close"
