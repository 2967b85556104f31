"""Token tree back to Markdown: what the user's facts contain is escaped on the way."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from markdown_it.token import Token
from markdown_it.tree import SyntaxTreeNode

_SPECIAL = re.compile(r"([\\`*\[\]<>~|]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|&(?=#?\w+;))")
_LINE_START = re.compile(r"^(\s*\d*)((?<!\d)[#+\-=]|(?<=\d)[.)])", re.MULTILINE)
_TICKS = re.compile(r"`+")


def markdown_of(tokens: Sequence[Token]) -> str:
    """The Markdown that parses to these tokens."""
    root = SyntaxTreeNode(tokens)
    return "\n\n".join(_block(child) for child in root.children)


def code(text: str) -> str:
    """Inline code, whatever backticks the text contains."""
    ticks = "`" * (1 + max((len(m) for m in _TICKS.findall(text)), default=0))
    pad = " " if text.startswith("`") or text.endswith("`") or not text.strip() else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def fence(text: str, info: str = "") -> str:
    """A fenced block, whatever backticks the text contains."""
    ticks = "`" * max(3, 1 + max((len(m) for m in _TICKS.findall(text)), default=0))
    return f"{ticks}{info}\n{text.rstrip()}\n{ticks}"


def escape(text: str) -> str:
    """Plain text that Markdown shows as it is."""
    return _LINE_START.sub(r"\1\\\2", _SPECIAL.sub(r"\\\1", text))


def _block(node: SyntaxTreeNode) -> str:
    match node.type:
        case "inline":
            return _inline(node.children)
        case "fence" | "code_block":
            return fence(node.content, node.info if node.type == "fence" else "")
        case "heading":
            return f"{'#' * int(node.tag[1:])} {_children(node)}"
        case "bullet_list" | "ordered_list":
            return "\n".join(_items(node))
        case "blockquote":
            return _indent(_children(node), "> ", "> ")
        case "table":
            return "\n".join(_table(node))
        case "hr":
            return "---"
        case _:
            return _children(node)


def _children(node: SyntaxTreeNode, between: str = "\n\n") -> str:
    return between.join(_block(child) for child in node.children)


def _items(node: SyntaxTreeNode) -> Iterator[str]:
    for number, item in enumerate(node.children, 1):
        mark = "- " if node.type == "bullet_list" else f"{number}. "
        yield _indent(_children(item, "\n"), mark, " " * len(mark))


def _indent(text: str, first: str, rest: str) -> str:
    return first + text.replace("\n", "\n" + rest)


def _table(node: SyntaxTreeNode) -> Iterator[str]:
    head, *body = node.children
    (titles,) = head.children
    yield _row(titles)
    yield "|" + " --- |" * len(titles.children)
    for part in body:
        yield from map(_row, part.children)


def _row(node: SyntaxTreeNode) -> str:
    return f"| {' | '.join(_children(cell).strip() for cell in node.children)} |"


def _inline(nodes: Iterable[SyntaxTreeNode], starts: bool = True) -> str:
    """Spans one after another; only what stands at the start of a line is escaped as such."""
    written = ""
    for node in nodes:
        written += _span(node, (starts and not written) or written.endswith("\n"))
    return written


def _span(node: SyntaxTreeNode, starts: bool) -> str:
    match node.type:
        case "text":
            return escape(node.content) if starts else _SPECIAL.sub(r"\\\1", node.content)
        case "code_inline":
            return code(node.content)
        case "strong":
            return f"**{_inline(node.children, False)}**"
        case "em":
            return f"*{_inline(node.children, False)}*"
        case "link":
            return f"[{_inline(node.children, False)}]({node.attrs.get('href', '')})"
        case "hardbreak":
            return "\\\n"
        case "softbreak":
            return "\n"
        case _:
            return _inline(node.children, starts) if node.children else escape(node.content)
