"""Changes to one source, collected by node and applied at once to give an `Edit`.

A block is taken apart into *pieces* (`pieces.py`), one per statement, so that `a; b` on one
line, one-line suites and whole blocks are changed by the same few operations.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import libcst as cst

from ...isolation.silence import silenced
from ...model import Edit, Edits
from .blocks import (
    BlockItem,
    as_pieces,
    attached,
    dressed,
    leftover,
    on_line,
    put_together,
    shares_line,
    take_apart,
    wrapped,
)
from .cst_tools import fitted, method
from .magics import mask
from .tree import Block, Statement, Tree, statements_in

#: Statements, or their text.
New: TypeAlias = Iterable[Statement | BlockItem] | str


@dataclass
class _Change:
    before: list[BlockItem] = field(default_factory=list)
    after: list[BlockItem] = field(default_factory=list)
    instead: list[BlockItem] | None = None


@dataclass
class Draft:
    """What is to change in one tree.  `edit()` gives the result, or None where it is no program.

    Each change returns the draft: `Draft(tree).remove(statement).edits()`.  A statement that is not
    known cannot be changed.
    """

    tree: Tree
    _hows: dict[cst.CSTNode, Callable[[Any], Any]] = field(default_factory=dict)
    _changes: dict[Statement, _Change] = field(default_factory=dict)
    _wraps: list[tuple[Statement, Statement, str]] = field(default_factory=list)
    _impossible: bool = False

    def replace(self, old: cst.CSTNode | None, new: cst.CSTNode | None) -> Draft:
        """Put another node (an expression, an argument …) in the place of one."""
        if old is None or new is None:
            self._impossible = True
            return self
        if isinstance(old, cst.BaseExpression) and isinstance(new, cst.BaseExpression):
            new = fitted(self.tree, old, new)
        return self.change(old, lambda _: new)

    def behind(self, node: cst.BaseExpression | None, call: str) -> Draft:
        """Make `node.call` of a node: `(a + b).clone()`."""
        return self.replace(node, None if node is None else method(node, call))

    def drop(self, node: cst.CSTNode) -> Draft:
        """Take out what is no statement, as a decorator."""
        return self.change(node, lambda _: cst.RemoveFromParent())

    def change(self, node: cst.CSTNode, how: Callable[[Any], Any]) -> Draft:
        """Change a node after everything inside it was: `how` gets it as it is by then."""
        self._hows[node] = how
        return self

    def instead(self, statement: Statement | None, new: New) -> Draft:
        """Put statements in the place of one; the comments around it stay."""
        self._change(statement).instead = as_pieces(new)
        return self

    def opened(self, block: cst.With | cst.If) -> Draft:
        """Put what stands in a block in the place of the block."""
        return self.instead(block, [self.piece(s) for s in statements_in(block.body)])

    def remove(self, statement: Statement | None) -> Draft:
        """Take a statement out, with the comments that belong to it."""
        self._change(statement).instead = []
        return self

    def before(self, statement: Statement | None, new: New) -> Draft:
        self._change(statement).before.extend(as_pieces(new))
        return self

    def after(self, statement: Statement | None, new: New) -> Draft:
        self._change(statement).after.extend(as_pieces(new))
        return self

    def move(
        self, run: Sequence[Statement], target: Statement, after: bool, to: Draft | None = None
    ) -> Draft:
        """Take statements from where they stand to before or behind another, of this tree or of
        that of another draft."""
        goal = self if to is None else to
        (goal.after if after else goal.before)(target, [self.piece(s) for s in run])
        for statement in run:
            self.remove(statement)
        return self

    def wrap(self, first: Statement, last: Statement, guard: str) -> Draft:
        """Put a run of statements of one block under a context manager."""
        if self.tree.block_of(first) is not self.tree.block_of(last):
            self._impossible = True
        self._wraps.append((first, last, guard))
        return self

    def piece(self, statement: Statement) -> BlockItem:
        """A statement as it stands, its comments included, for moving or copying it."""
        block = self.tree.block_of(statement)
        assert block is not None
        found = take_apart(block)[statements_in(block).index(statement)]
        trailing = None if shares_line(found) else found.trailing
        return replace(found, leading=attached(found.leading), trailing=trailing, line=None)

    @property
    def changed(self) -> bool:
        """Whether anything was asked for."""
        return bool(self._hows or self._changes or self._wraps or self._impossible)

    def edit(self) -> Edit | None:
        """The whole new text; None where nothing changed or the result does not compile."""
        try:
            visited = self.tree.module.visit(_Applier(self))
        except cst.CSTValidationError:
            return None
        if self._impossible or not isinstance(visited, cst.Module):
            return None
        code = visited.code
        text = self.tree.masked.unmask(code)
        old = self.tree.source.text
        if text is None or text == old or not compiles(code):
            return None
        return Edit(self.tree.source.cell, self.tree.source.file, old, text)

    def edits(self) -> Edits | None:
        """The edit as transformers return it."""
        edit = self.edit()
        return None if edit is None else (edit,)

    def _changed(self) -> Iterator[cst.CSTNode]:
        yield from (*self._hows, *self._changes, self.tree.module)
        yield from (first for first, _, _ in self._wraps)

    def _change(self, statement: Statement | None) -> _Change:
        if statement is None or self.tree.block_of(statement) is None:
            self._impossible = True  # nothing can stand before an `elif`
        return _Change() if statement is None else self._changes.setdefault(statement, _Change())

    def _rebuild(self, original: Block, updated: Block) -> Block:
        """A block with the changes of its own statements made."""
        owners = statements_in(original)
        starts = {first for first, _, _ in self._wraps}
        if not any(o in self._changes or o in starts for o in owners):
            return updated
        groups = [
            self._group(owner, piece)
            for owner, piece in zip(owners, take_apart(updated), strict=True)
        ]
        for first, last, guard in self._wraps:
            if first in owners:
                wrapped(groups, owners.index(first), owners.index(last), guard)
        rest = leftover(groups)
        return put_together(updated, [piece for group in groups for piece in group], rest)

    def _group(self, owner: Statement, piece: BlockItem) -> list[BlockItem]:
        change = self._changes.get(owner)
        if change is None:
            return [piece]
        line = piece.line if shares_line(piece) else None
        if change.instead is None:
            own = [piece]
        elif change.instead:
            own = dressed(change.instead, piece, line)
        else:
            own = [replace(piece, removed=True)]
        group = [*on_line(change.before, line), *own, *on_line(change.after, line)]
        if change.before:  # comments above stay above everything that comes in its place
            group[len(change.before)] = replace(own[0], leading=())
            group[0] = replace(group[0], leading=(*own[0].leading, *group[0].leading))
        return group


class Drafts(dict[Tree, Draft]):
    """A draft of each tree that is asked for."""

    def __missing__(self, tree: Tree) -> Draft:
        self[tree] = Draft(tree)
        return self[tree]

    def edits(self) -> Edits | None:
        """All that was asked for as one rewrite; None where that is nothing or cannot be."""
        edits = [draft.edit() for draft in self.values() if draft.changed]
        whole = tuple(edit for edit in edits if edit is not None)
        return whole if whole and len(whole) == len(edits) else None


def only(drafts: Iterable[Draft | None]) -> Edits | None:
    """The edits of the one draft there is; None where a place leaves a choice, or nothing to do."""
    found = [draft for draft in drafts if draft is not None]
    return found[0].edits() if len(found) == 1 else None


class _Applier(cst.CSTTransformer):
    """Goes only where something changes; the rest of the tree is taken over as it is."""

    def __init__(self, draft: Draft) -> None:
        super().__init__()
        self.draft = draft
        self.on_the_way = {
            id(node) for changed in draft._changed() for node in draft.tree.path(changed)
        }

    def on_visit(self, node: cst.CSTNode) -> bool:
        return id(node) in self.on_the_way

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> cst.CSTNode:  # type: ignore[override]
        how = self.draft._hows.get(original_node)
        if how is not None:
            made: cst.CSTNode = how(updated_node)
            return made
        if isinstance(original_node, (cst.Module, cst.IndentedBlock, cst.SimpleStatementSuite)):
            assert isinstance(updated_node, (cst.Module, cst.BaseSuite))
            return self.draft._rebuild(original_node, updated_node)
        return updated_node


def compiles(code: str) -> bool:
    """Whether a cell or file compiles, `await` at the top of a cell included."""
    with silenced():
        try:
            compile(code, "<rewrite>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError):
            return False
    return True


def python_of(text: str) -> str:
    """A cell or file, its magics masked where it does not compile with them."""
    masked = None if compiles(text) else mask(text)
    return text if masked is None else masked.text


def is_program(text: str) -> bool:
    """Whether a cell or file compiles, its magics aside."""
    return compiles(python_of(text))
