"""Passages as lines of rich Text: never through rich's markup, which would eat `[mask]`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from markdown_it.tree import SyntaxTreeNode
from rich.cells import cell_len
from rich.text import Text

from .texts import Passage
from .wrap import CODE, wrap

_STYLES = {"strong": "bold", "em": "italic", "link": "underline"}


def one_line(passage: Passage, style: str = "") -> Text:
    """An inline passage as Text; code keeps its backticks, as compilers print it."""
    text = Text(style=style)
    for token in passage.tokens:
        if token.children:
            _append(text, SyntaxTreeNode([token]).children[0].children, "")
    return text


def _append(text: Text, nodes: Iterable[SyntaxTreeNode], style: str) -> None:
    for node in nodes:
        if node.type == "code_inline":
            text.append(f"`{node.content}`", f"{style} {CODE}".strip())
        elif node.type == "hardbreak":
            text.append("\n")
        elif node.children:
            _append(text, node.children, f"{style} {_STYLES.get(node.type, '')}".strip())
        else:
            text.append(node.content, style)


def paragraphs(passage: Passage, width: int) -> list[Text]:
    """Blocks of Markdown as wrapped lines, an empty line between blocks."""
    return list(_blocks(SyntaxTreeNode(list(passage.tokens)).children, width))


def _blocks(nodes: Iterable[SyntaxTreeNode], width: int, gap: bool = True) -> Iterator[Text]:
    for number, node in enumerate(nodes):
        if number and gap:
            yield Text()
        yield from _block(node, width)


def _block(node: SyntaxTreeNode, width: int) -> Iterator[Text]:
    match node.type:
        case "paragraph" | "inline" | "heading":
            yield from wrap(_inline(node), width)
        case "fence" | "code_block":
            yield from indented(code_lines(node.content, node.info), "    ")
        case "bullet_list" | "ordered_list":
            yield from _list(node, width)
        case "table":
            yield from _table(node, width)
        case "blockquote":
            yield from indented(_blocks(node.children, width - 2), "│ ")
        case _:
            yield from _blocks(node.children, width)


def _inline(node: SyntaxTreeNode) -> Text:
    text = Text(style="bold" if node.type == "heading" else "")
    inline = node if node.type == "inline" else node.children[0]
    _append(text, inline.children, "")
    return text


def _list(node: SyntaxTreeNode, width: int) -> Iterator[Text]:
    for number, item in enumerate(node.children, 1):
        mark = "• " if node.type == "bullet_list" else f"{number}. "
        lines = _blocks(item.children, width - len(mark), gap=False)
        yield from indented(lines, mark, " " * len(mark))


def indented(
    lines: Iterable[Text], first: str | Text, rest: str | Text | None = None
) -> Iterator[Text]:
    """Lines after a mark; `rest` stands before all but the first."""
    for number, text in enumerate(lines):
        yield Text.assemble(first if not number or rest is None else rest, text)


def code_lines(code: str, language: str = "python") -> list[Text]:
    """Highlighted code, line by line, for colour terminals."""
    from rich.syntax import Syntax

    text = Syntax("", language or "text", theme="ansi_dark").highlight(code.rstrip("\n"))
    text.rstrip()
    return list(text.split("\n", allow_blank=True))


def _table(node: SyntaxTreeNode, width: int) -> Iterator[Text]:
    rows = [
        [_cell(cell) for cell in row.children] for part in node.children for row in part.children
    ]
    sizes = [max(cell_len(cell.plain) for cell in column) for column in zip(*rows, strict=True)]
    body = [max(cell_len(c.plain) for c in column) for column in zip(*rows[1:], strict=True)]
    room = width - 2 * (len(sizes) - 1)
    for floor in (body or sizes, [4] * len(sizes)):
        sizes = _narrowed(sizes, floor, room)
    for number, row in enumerate(rows):
        yield from _table_row(row, sizes)
        if not number:
            yield Text("  ".join("─" * size for size in sizes), "dim")


def _cell(node: SyntaxTreeNode) -> Text:
    return _inline(node.children[0]) if node.children else Text()


def _narrowed(sizes: list[int], floor: list[int], room: int) -> list[int]:
    """Take from the widest columns first, headings before cells."""
    sizes = list(sizes)
    while sum(sizes) > room and any(map(int.__gt__, sizes, floor)):
        wide = [n for n, size in enumerate(sizes) if size > floor[n]]
        sizes[max(wide, key=lambda n: sizes[n])] -= 1
    return sizes


def _table_row(row: list[Text], sizes: list[int]) -> Iterator[Text]:
    cells = [wrap(cell, size) for cell, size in zip(row, sizes, strict=True)]
    for number in range(max(map(len, cells), default=0)):
        line = Text()
        for cell, size in zip(cells, sizes, strict=True):
            part = cell[number] if number < len(cell) else Text()
            line.append_text(part)
            line.append(" " * (size - cell_len(part.plain) + 2))
        line.rstrip()
        yield line
