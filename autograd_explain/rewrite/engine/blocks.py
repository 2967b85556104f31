"""A block taken apart into its statements, each with its comments, and put together again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import libcst as cst

from .cst_tools import expression
from .magics import is_masked
from .tree import Block, Statement, statements_in

Leading = tuple[cst.EmptyLine, ...]
Line = cst.SimpleStatementLine | cst.SimpleStatementSuite


@dataclass(frozen=True, eq=False)
class BlockItem:
    """A statement with the comments above it and, where it ends its line, what stands behind it.

    Pieces that share `line` stand on one line of the text.  A `removed` piece only leaves the
    comments that do not belong to it.
    """

    node: Statement
    leading: Leading = ()
    trailing: cst.TrailingWhitespace | None = None
    line: Line | None = None
    removed: bool = False


def take_apart(block: Block) -> list[BlockItem]:
    """One piece per statement of the block, in order."""
    if isinstance(block, cst.SimpleStatementSuite):
        return _line_pieces(block, ())
    assert isinstance(block, (cst.Module, cst.IndentedBlock))
    pieces: list[BlockItem] = []
    for line in block.body:
        leading = tuple(getattr(line, "leading_lines", ()))
        if isinstance(line, cst.SimpleStatementLine):
            pieces += _line_pieces(line, leading)
        elif isinstance(line, cst.BaseCompoundStatement):
            pieces.append(BlockItem(line.with_changes(leading_lines=()), leading))
    if pieces and isinstance(block, cst.Module):
        pieces[0] = replace(pieces[0], leading=(*attached(block.header), *pieces[0].leading))
    return pieces


def put_together(block: Block, pieces: Sequence[BlockItem], rest: Leading) -> Block:
    """The block with these statements; `rest` are comments whose statement is gone."""
    if not pieces and not isinstance(block, cst.Module):
        pieces = [BlockItem(cst.Pass())]
    if isinstance(block, cst.SimpleStatementSuite):
        smalls = [p.node for p in pieces if isinstance(p.node, cst.BaseSmallStatement)]
        if len(smalls) == len(pieces):
            return block.with_changes(body=_joined(smalls, ends_line=True))
        return cst.IndentedBlock(_body(pieces))
    if any(line.comment for line in rest):
        assert isinstance(block, (cst.Module, cst.IndentedBlock))
        block = block.with_changes(footer=(*rest, *block.footer))
    if isinstance(block, cst.Module) and block.body:
        # LibCST gives all comments above the first statement to the module.
        own = len(attached(block.header))
        block = block.with_changes(header=block.header[: len(block.header) - own])
    return block.with_changes(body=_body(pieces))


def shares_line(piece: BlockItem) -> bool:
    """Whether other statements, or the head of a suite, stand on the same line."""
    if piece.line is None:
        return False
    return isinstance(piece.line, cst.SimpleStatementSuite) or len(piece.line.body) > 1


def attached(leading: Sequence[cst.EmptyLine]) -> Leading:
    """The comments that belong to a statement: those with no blank line in between."""
    count = 0
    while count < len(leading) and _is_plain_comment(leading[-1 - count]):
        count += 1
    return tuple(leading[len(leading) - count :])


def _is_plain_comment(line: cst.EmptyLine) -> bool:
    """Whether a line is a comment that may move: no hidden cell magic, shebang or cell mark."""
    if line.comment is None or is_masked(line.comment.value):
        return False
    return not line.comment.value.startswith(("#!", "# -*-", "# %%", "#%%"))


def suite(statements: Sequence[Statement | BlockItem]) -> cst.IndentedBlock:
    """An indented block of statements that stood elsewhere."""
    return cst.IndentedBlock(_body(as_pieces(statements)))


def as_pieces(new: Iterable[Statement | BlockItem] | str) -> list[BlockItem]:
    new = statements_in(cst.parse_module(new)) if isinstance(new, str) else new
    return [n if isinstance(n, BlockItem) else BlockItem(_alone(n)) for n in new]


def _alone(statement: Statement) -> Statement:
    """The statement without what belongs to the line that it was taken from."""
    if isinstance(statement, cst.BaseSmallStatement):
        return statement.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)
    return statement


def on_line(pieces: Sequence[BlockItem], line: Line | None) -> list[BlockItem]:
    return [p if p.line is not None else replace(p, line=line) for p in pieces]


def dressed(new: Sequence[BlockItem], old: BlockItem, line: Line | None) -> list[BlockItem]:
    """The new pieces with the comments and the semicolon of the piece they replace."""
    pieces = on_line(new, line)
    pieces[0] = replace(pieces[0], leading=(*old.leading, *pieces[0].leading))
    last = pieces[-1]
    node = last.node
    if isinstance(node, cst.BaseSmallStatement) and isinstance(old.node, cst.BaseSmallStatement):
        node = node.with_changes(semicolon=old.node.semicolon)
    pieces[-1] = replace(last, node=node, trailing=last.trailing or old.trailing)
    return pieces


def leftover(groups: list[list[BlockItem]]) -> Leading:
    """Take removed pieces out, hand their loose comments on; returns those nobody could take."""
    loose: Leading = ()
    for number, group in enumerate(groups):
        kept: list[BlockItem] = []
        for piece in group:
            if piece.removed:
                own = attached(piece.leading)
                loose = _stacked(loose, piece.leading[: len(piece.leading) - len(own)])
                _hand_comment_back(piece, kept, groups[:number])
            else:
                kept.append(replace(piece, leading=_stacked(loose, piece.leading)))
                loose = ()
        groups[number] = kept
    return loose


def with_guard(guard: str, body: cst.IndentedBlock) -> cst.With:
    """A block under a context manager, one called without arguments or written out."""
    manager = expression(guard if guard.endswith(")") else f"{guard}()")
    return cst.With([cst.WithItem(manager)], body)


def wrapped(groups: list[list[BlockItem]], first: int, last: int, guard: str) -> None:
    """Put the groups `first` to `last` under a context manager, in place."""
    inner = [piece for group in groups[first : last + 1] for piece in group if not piece.removed]
    leading = inner[0].leading
    inner[0] = replace(inner[0], leading=())
    outer = BlockItem(with_guard(guard, cst.IndentedBlock(_body(inner))), leading)
    groups[first : last + 1] = [[outer], *([] for _ in range(last - first))]


def _line_pieces(line: Line, leading: Leading) -> list[BlockItem]:
    last = len(line.body) - 1
    return [
        BlockItem(
            small,
            leading if number == 0 else (),
            line.trailing_whitespace if number == last else None,
            line,
        )
        for number, small in enumerate(line.body)
    ]


def _stacked(above: Leading, below: Leading) -> Leading:
    """Two runs of blank lines and comments as one, without doubling the blank lines between."""
    while above and below and above[-1].comment is None and below[0].comment is None:
        above = above[:-1]
    return (*above, *below)


def _hand_comment_back(
    piece: BlockItem, kept: list[BlockItem], earlier: list[list[BlockItem]]
) -> None:
    """The comment behind `a; b` stays when only `b` goes."""
    if piece.trailing is None or not shares_line(piece):
        return
    home = kept or next((group for group in reversed(earlier) if group), [])
    if home and home[-1].line is piece.line:
        last = home[-1].node.with_changes(semicolon=getattr(piece.node, "semicolon", None))
        home[-1] = replace(home[-1], node=last, trailing=piece.trailing)


def _body(pieces: Sequence[BlockItem]) -> list[cst.SimpleStatementLine | cst.BaseCompoundStatement]:
    body: list[cst.SimpleStatementLine | cst.BaseCompoundStatement] = []
    run: list[BlockItem] = []

    def flush() -> None:
        if run:
            body.append(_simple_line(run))
            run.clear()

    for piece in pieces:
        if piece.line is None or piece.leading or (run and piece.line is not run[0].line):
            flush()
        if isinstance(piece.node, cst.BaseSmallStatement):
            run.append(piece)
        else:
            flush()
            body.append(_compound(piece, piece.node))
    flush()
    return body


def _compound(piece: BlockItem, node: cst.BaseCompoundStatement) -> cst.BaseCompoundStatement:
    above = (*piece.leading, *getattr(node, "leading_lines", ()))
    if piece.trailing is not None and piece.trailing.comment is not None:
        above = (*above, cst.EmptyLine(comment=piece.trailing.comment))
    return node.with_changes(leading_lines=above)


def _simple_line(run: list[BlockItem]) -> cst.SimpleStatementLine:
    smalls = [p.node for p in run if isinstance(p.node, cst.BaseSmallStatement)]
    trailing = run[-1].trailing
    return cst.SimpleStatementLine(
        body=_joined(smalls, ends_line=trailing is not None),
        leading_lines=run[0].leading,
        trailing_whitespace=trailing or cst.TrailingWhitespace(),
    )


def _joined(
    smalls: Sequence[cst.BaseSmallStatement], ends_line: bool
) -> list[cst.BaseSmallStatement]:
    """Small statements of one line with `; ` between them.

    A semicolon at the very end (IPython: show no value) stays with the statement that had it.
    """
    joined = [_with_space(small) for small in smalls[:-1]]
    last = smalls[-1]
    return [*joined, last if ends_line else last.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)]


def _with_space(small: cst.BaseSmallStatement) -> cst.BaseSmallStatement:
    semicolon = small.semicolon
    if not isinstance(semicolon, cst.Semicolon) or not semicolon.whitespace_after.empty:
        return small
    space = semicolon.with_changes(whitespace_after=cst.SimpleWhitespace(" "))
    return small.with_changes(semicolon=space)
