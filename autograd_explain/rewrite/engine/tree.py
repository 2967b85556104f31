"""From a place of the report to the statement and the expression it means."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cache, cached_property, lru_cache
from typing import TypeAlias, TypeVar, cast

import libcst as cst
from libcst.metadata import CodeRange, PositionProvider

from ...model import Place, Span
from ...program import Program, Source
from ...program_index import index_of
from ...set_aside import set_aside
from .imports import Imports
from .magics import Masked, mask

N = TypeVar("N", bound=cst.CSTNode)
Statement: TypeAlias = cst.BaseSmallStatement | cst.BaseCompoundStatement
Block: TypeAlias = cst.Module | cst.BaseSuite
Scope: TypeAlias = cst.Module | cst.FunctionDef | cst.ClassDef | cst.Lambda | cst.BaseComp


@dataclass(frozen=True, eq=False)
class _Parsed:
    """What a text is parsed to, whichever program it is in."""

    source: Source
    masked: Masked
    module: cst.Module
    positions: Mapping[cst.CSTNode, CodeRange]

    @cached_property
    def parents(self) -> Mapping[cst.CSTNode, cst.CSTNode]:
        with _no_collection():
            return {child: node for node in _everything(self.module) for child in _children(node)}

    @cached_property
    def statements(self) -> tuple[Statement, ...]:
        return tuple(n for n in _statements_below(self.module) if n in self.positions)


class Tree:
    """The parsed text of a cell or a file of a program; lines are those of the text as typed."""

    def __init__(self, program: Program, text: _Parsed) -> None:
        self.program, self._text = program, text
        self.source, self.masked = text.source, text.masked
        self.module, self.positions = text.module, text.positions

    @property
    def parsed(self) -> bool:
        """Whether this is the text: what does not parse has a tree without statements."""
        return self.module in self.positions

    @property
    def parents(self) -> Mapping[cst.CSTNode, cst.CSTNode]:
        return self._text.parents

    @property
    def statements(self) -> tuple[Statement, ...]:
        """Every statement, in the order of the text."""
        return self._text.statements

    @cached_property
    def imports(self) -> Imports:
        """The names under which it knows torch and its modules."""
        return Imports.of(self.program, self.source)

    @property
    def namespace(self) -> list[Tree]:
        """The trees of all texts that share its names, in the order in which they ran."""
        sources = index_of(self.program).namespace(self.source)
        return [tree_of(self.program, source) for source in sources]

    def span(self, node: cst.CSTNode) -> Span:
        where = self.positions[node]
        return Span(where.start.line, where.start.column, where.end.line, where.end.column)

    def start(self, node: cst.CSTNode) -> tuple[int, int]:
        where = self.positions[node].start
        return where.line, where.column

    def is_behind(self, node: cst.CSTNode, other: cst.CSTNode) -> bool:
        """Whether a node begins behind the end of another."""
        end = self.positions[other].end
        return self.start(node) > (end.line, end.column)

    def code(self, node: cst.CSTNode) -> str:
        return self.module.code_for_node(node)

    def place(self, node: cst.CSTNode) -> Place:
        """The place of a node, for handing it on to another transformer."""
        span = self.span(node)
        line = self.source.lines[span.line - 1]
        indent = len(line) - len(line.lstrip())
        source = self.source
        return Place(source.cell, source.file, span.line, line.strip(), None, span, indent)

    def ancestors(self, node: cst.CSTNode | None) -> Iterator[cst.CSTNode]:
        """The node's parents, innermost first."""
        while node is not None and (node := self.parents.get(node)) is not None:
            yield node

    def path(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """The node and its parents, innermost first."""
        yield node
        yield from self.ancestors(node)

    def inside(self, node: cst.CSTNode, outer: cst.CSTNode) -> bool:
        return node is outer or any(a is outer for a in self.ancestors(node))

    def statement_of(self, node: cst.CSTNode) -> Statement | None:
        """The innermost statement that holds a node (itself, if it is one)."""
        return next((n for n in self.path(node) if isinstance(n, Statement)), None)

    def block_of(self, statement: Statement) -> Block | None:
        """The block whose list holds the statement; None for an `elif`."""
        parent = self.parents.get(statement)
        if isinstance(parent, cst.SimpleStatementLine):
            parent = self.parents.get(parent)
        return parent if isinstance(parent, (cst.Module, cst.BaseSuite)) else None

    def around(self, node: cst.CSTNode | None, kind: type[N]) -> N | None:
        """The innermost node of a kind around one."""
        return next((a for a in self.ancestors(node) if isinstance(a, kind)), None)

    def outer(self, node: cst.CSTNode) -> cst.BaseCompoundStatement | None:
        """The innermost compound statement around a node."""
        return self.around(node, cst.BaseCompoundStatement)  # type: ignore[type-abstract]

    def alone_in(self, own: Statement, *kinds: type[cst.For | cst.If]) -> Statement:
        """A statement with the blocks of these kinds around it that hold nothing else."""
        outer = self.outer(own)
        while isinstance(outer, kinds) and not outer.orelse and statements_in(outer.body) == [own]:
            own, outer = outer, self.outer(outer)
        return own

    def loops(self, node: cst.CSTNode | None) -> list[cst.For | cst.While]:
        """The loops around a node, innermost first."""
        return [a for a in self.ancestors(node) if isinstance(a, (cst.For, cst.While))]

    def siblings(self, statement: Statement | None) -> tuple[list[Statement], int]:
        """The statements of the block that holds this one, and where it stands among them."""
        block = None if statement is None else self.block_of(statement)
        inside = [] if block is None else statements_in(block)
        return inside, next((i for i, s in enumerate(inside) if s is statement), 0)

    def scope_of(self, node: cst.CSTNode) -> Scope:
        """The innermost function, class, lambda, comprehension or module around a node."""
        kinds = (cst.Module, cst.FunctionDef, cst.ClassDef, cst.Lambda, cst.BaseComp)
        return next((a for a in self.ancestors(node) if isinstance(a, kinds)), self.module)

    def candidates(self, place: Place | None) -> tuple[Statement, ...]:
        """The statements a place may mean: one where it has a span, a column or a line to itself.

        Of `if c: x += 1` both: callers know what they look for.
        """
        if place is None:
            return ()
        if place.span is not None:
            exact = self._around(place.span)
            return () if exact is None else (exact,)
        found = tuple(s for s in self.statements if self._on_line(s, place.line))
        column = self.source.column_of(place)
        meant = tuple(s for s in found if self.start(s) == (place.line, column))
        return meant or found

    def statement(self, place: Place | None) -> Statement | None:
        """The one statement at a place; None where several are possible or none is."""
        found = self.candidates(place)
        small = [s for s in found if isinstance(s, cst.BaseSmallStatement)]
        chosen = small or found[-1:]
        return chosen[0] if len(chosen) == 1 else None

    def _on_line(self, statement: Statement, line: int) -> bool:
        """Whether a line is the statement's, of one that holds others its head's."""
        span = self.span(statement)
        if isinstance(statement, cst.BaseSmallStatement):
            return span.line <= line <= span.end_line
        body, decorators = getattr(statement, "body", None), getattr(statement, "decorators", ())
        first = min([span.line, *(self.span(d).line for d in decorators)])
        inner = statements_in(body) if isinstance(body, cst.BaseSuite) else []
        last = self.span(inner[0]).line - isinstance(body, cst.IndentedBlock) if inner else 0
        return first <= line <= max(last, span.line)

    def _around(self, span: Span) -> Statement | None:
        lines = ((s, self.positions[s]) for s in self.statements)
        near = (s for s, at in lines if at.start.line <= span.line <= span.end_line <= at.end.line)
        return max((s for s in near if self.span(s).holds(span)), key=self.start, default=None)

    def at(self, place: Place | None) -> list[cst.BaseExpression]:
        """The expressions that cover exactly a place's span, their own parentheses aside, the
        outermost of equal ones first."""
        if place is None or place.span is None:
            return []
        nodes = (n for n in self.positions if isinstance(n, cst.BaseExpression))
        return [n for n in nodes if place.span in (self.span(n), self._with_parentheses(n))]

    def node(self, place: Place | None) -> cst.BaseExpression | None:
        """The outermost of them."""
        return next(iter(self.at(place)), None)

    def call(self, place: Place | None) -> cst.Call | None:
        """The outermost call of them."""
        return next((node for node in self.at(place) if isinstance(node, cst.Call)), None)

    def _with_parentheses(self, node: cst.BaseExpression) -> Span | None:
        """`ast` counts the parentheses of a tuple as part of it, LibCST does not."""
        if not node.lpar or not isinstance(node, (cst.Tuple, cst.GeneratorExp)):
            return None
        left, right = self.span(node.lpar[0]), self.span(node.rpar[-1])
        return Span(left.line, left.column, right.end_line, right.end_column)


def tree_of(program: Program, source: Source | None) -> Tree:
    """The tree of a source, which has no statements where it does not parse.  Of a very long one
    a literal stands for what is set aside."""
    aside = () if source is None else set_aside(program, source)
    return _tree(program, _NOTHING if source is None else _parse(source, aside))


def _tree(program: Program, text: _Parsed) -> Tree:
    """The program's one tree of a text."""
    found: Tree = program.derived.setdefault((Tree, text), Tree(program, text))
    return found


def tree_at(program: Program, place: Place | None) -> Tree:
    """The tree of the source that a place is in, without statements where it is in none."""
    source = program.source_at(place)
    if source is not None and place is not None:
        line = place.line - source.offset
        if any(first <= line <= last for first, last in set_aside(program, source)):
            return _tree(program, _parse(source, ()))
    return tree_of(program, source)


def statement_at(program: Program, place: Place | None) -> tuple[Tree, Statement | None]:
    """The one statement that a place means, and the tree that it is in."""
    tree = tree_at(program, place)
    return tree, tree.statement(place)


_NOTHING = _Parsed(Source(None, None, "", "", ""), Masked(""), cst.Module(()), {})


def statements_in(block: cst.CSTNode) -> list[Statement]:
    """The statements that stand directly in a block, `a; b` counted as two."""
    if isinstance(block, cst.SimpleStatementSuite):
        return list(block.body)
    found: list[Statement] = []
    for line in getattr(block, "body", ()):
        if isinstance(line, cst.SimpleStatementLine):
            found.extend(line.body)
        elif isinstance(line, cst.BaseCompoundStatement):
            found.append(line)
    return found


def functions_in(block: cst.CSTNode) -> dict[str, cst.FunctionDef]:
    """The functions that stand directly in a block, by name."""
    return {s.name.value: s for s in statements_in(block) if isinstance(s, cst.FunctionDef)}


def opening(block: cst.CSTNode) -> Statement | None:
    """The first statement of a block that is no docstring."""
    inside = statements_in(block)
    said = getattr(inside[0], "value", None) if inside else None
    return next(iter(inside[1:] if isinstance(said, _TEXTS) else inside), None)


_TEXTS = (cst.SimpleString, cst.ConcatenatedString)


@lru_cache(maxsize=1024)
def normal(code: str) -> str | None:
    """An expression's text with layout, quotes and parentheses made equal; None: no expression."""
    try:
        return ast.unparse(ast.parse(f"({code}\n)", mode="eval"))
    except (SyntaxError, ValueError, RecursionError):
        return None


def _statements_below(node: cst.CSTNode) -> Iterator[Statement]:
    """The statements in a node, in the order of the text; none is part of an expression."""
    pending = [node]
    while pending:
        node = pending.pop()
        small = isinstance(node, cst.BaseSmallStatement)
        if small or isinstance(node, cst.BaseCompoundStatement):
            yield cast(Statement, node)
        if not small and not isinstance(node, cst.BaseExpression):
            pending.extend(reversed([*_children(node)]))


def _everything(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    pending = [node]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(_children(node))


def _children(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Like `node.children`, field by field; that property visits, which takes ten times as long."""
    for name in _fields(type(node)):
        value = getattr(node, name)
        if isinstance(value, cst.CSTNode):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from (item for item in value if isinstance(item, cst.CSTNode))


@cache
def _fields(kind: type[cst.CSTNode]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


@contextmanager
def _no_collection() -> Iterator[None]:
    """A tree is a million objects, none of them garbage: looking for some doubles the time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


@lru_cache(maxsize=32)
@_no_collection()
def _parse(source: Source, aside: tuple[tuple[int, int], ...]) -> _Parsed:
    lines = [(first + source.offset, last + source.offset) for first, last in aside]
    masked: Masked | None = Masked(source.text).without(lines)
    module = None if masked is None else _module(masked.text)
    if module is None and source.cell is not None:
        masked = mask(source.text)
        masked = None if masked is None else masked.without(lines)
        module = None if masked is None else _module(masked.text)
    if masked is None or module is None:
        return _Parsed(source, Masked(""), cst.Module(()), {})
    return _Parsed(source, masked, module, _Positions().of(module))


class _Positions(PositionProvider):
    """LibCST's positions without its `MetadataWrapper` (1.8), which copies the tree and visits
    every node once more for providers that nobody asked for."""

    def of(self, module: cst.Module) -> Mapping[cst.CSTNode, CodeRange]:
        self._gen_impl(module)
        return cast(Mapping[cst.CSTNode, CodeRange], self._computed)  # this one is not lazy


def _module(text: str) -> cst.Module | None:
    try:
        return cst.parse_module(text)
    except (cst.ParserSyntaxError, RecursionError):
        return None
