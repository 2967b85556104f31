"""From a code object and an instruction to the expression in the user's text."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, SimpleNamespace

from ...loaded import is_generated
from ...model import Place
from ...program import Program, Source
from ...program_index import index_of
from .call_sites import CallFrame


@dataclass(frozen=True, eq=False)
class CodePosition:
    """A step of a site in the program's text; `node` is the expression or statement that the
    instruction belongs to, `statement` the one around it, None where not found."""

    source: Source
    line: int
    function: str
    node: ast.AST | None
    statement: ast.stmt | None

    @property
    def scope(self) -> ast.AST:
        """The function that it stands in, or the top level."""
        around = self.source.function_around
        return (None if self.statement is None else around(self.statement)) or self.source.tree

    @property
    def assigned(self) -> ast.expr | None:
        """`x` in `x = node`, where the whole value is the node."""
        statement = self.statement
        if isinstance(statement, ast.Assign) and statement.value is self.node:
            return statement.targets[0] if len(statement.targets) == 1 else None
        if isinstance(statement, (ast.AnnAssign, ast.AugAssign)) and statement.value is self.node:
            return statement.target
        return None

    def text(self, node: ast.AST | None) -> str:
        """An expression as the user wrote it."""
        if node is None:
            return ""
        return self.source.segment(node) or ast.unparse(node)

    def place(self, whole: bool) -> Place:
        """The place, its span the expression or, with `whole`, the statement."""
        node = self.statement if whole and self.statement is not None else self.node
        # IPython 7.34 names a cell's top level "<cell line: 3>".
        top = self.function.startswith(("<module>", "<cell line:"))
        return self.source.place(self.line, None if top else self.function, node)


def conditions_around(spot: CodePosition) -> Iterator[ast.AST]:
    """The choices that a step is an outcome of; whether there is a value at all is none."""
    inner = spot.node or spot.statement
    for outer in () if inner is None else spot.source.around(inner):
        tested = getattr(outer, "test", None)
        if isinstance(outer, (ast.If, ast.IfExp)) and inner is not tested:
            if not _asks_for_none(outer.test):
                yield outer
        elif isinstance(outer, (ast.BoolOp, ast.match_case)):
            yield outer
        inner = outer


def _asks_for_none(test: ast.expr) -> bool:
    compared = test.comparators[0] if isinstance(test, ast.Compare) else None
    return isinstance(compared, ast.Constant) and compared.value is None


def operands_of(node: ast.AST | None) -> list[ast.expr]:
    """What an operation is given; [] of a call, whose receiver may be a namespace."""
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.AugAssign):
        return [node.target, node.value]
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if isinstance(node, ast.UnaryOp):
        return [node.operand]
    return [node.value] if isinstance(node, (ast.Attribute, ast.Subscript)) else []


def spot_of(program: Program, step: CallFrame) -> CodePosition | None:
    """Where a step is in the text; None where its source is gone."""
    source = _source(program, step)
    if source is None:
        return None
    line = line_of(step.code, step.instruction)
    node = _node(source, step, line)
    statement = _statement(source, node) if node is not None else source.statement_at(line)
    return CodePosition(source, line, step.code.co_name, node, statement)


def _source(program: Program, step: CallFrame) -> Source | None:
    """The text that ran: of equal cells under one file name the one that was running."""
    own = step.cell is not None and not is_generated(step.code)
    for source in index_of(program).runs if own else ():
        if source.cell == step.cell and source.filename == step.code.co_filename:
            return source
    return program.source_of(step.code)


def line_of(code: CodeType, instruction: int) -> int:
    """The line of an instruction, as its frame would have reported it."""
    for start, end, line in code.co_lines():
        if start <= instruction < end and line is not None:
            return line
    return code.co_firstlineno


def _node(source: Source, step: CallFrame, line: int) -> ast.AST | None:
    if sys.version_info >= (3, 11):
        return _node_by_position(source, step)
    return _node_by_bytecode(source, step, line)


def _node_by_position(source: Source, step: CallFrame) -> ast.AST | None:
    """The innermost expression or statement with exactly the instruction's range."""
    positions = list(step.code.co_positions())  # type: ignore[attr-defined]
    index = step.instruction // 2
    if index >= len(positions) or None in positions[index]:
        return None
    wanted = positions[index]
    found = [node for node in source.nodes_from.get(wanted[0], ()) if _range(node) == wanted]
    # An expression statement has the range of its expression.
    return next((n for n in found if isinstance(n, ast.expr)), found[0] if found else None)


def _range(node: ast.expr | ast.stmt) -> tuple[int, int | None, int, int | None]:
    return (node.lineno, node.end_lineno, node.col_offset, node.end_col_offset)


def _node_by_bytecode(source: Source, step: CallFrame, line: int) -> ast.AST | None:
    """Python 3.10 has no positions in its code objects; `executing` compares the bytecode."""
    from executing import Source as ExecutingSource

    frame = SimpleNamespace(f_code=step.code, f_lasti=step.instruction, f_lineno=line, f_globals={})
    try:
        node = ExecutingSource.executing(frame).node  # type: ignore[arg-type]
    except Exception:
        return None
    if not isinstance(node, (ast.expr, ast.stmt)):
        return None
    near = source.nodes_from.get(node.lineno, ())
    same = [n for n in near if type(n) is type(node) and _range(n) == _range(node)]
    return same[0] if same else None


def _statement(source: Source, node: ast.AST) -> ast.stmt | None:
    """The innermost statement around a node of the source's tree."""
    around = (node, *source.around(node))
    return next((n for n in around if isinstance(n, ast.stmt)), None)
