"""The expression of the user's that an operation was written as, and its operand."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from autograd_explain.inspect.facts.nan_source import operation_named
from autograd_explain.model import Place
from autograd_explain.program import Program, Source

#: What functions are called on that are no tensors.
_NAMESPACES = frozenset({"torch", "F", "nn", "functional"})


class Line(Protocol):
    """A line that a frame stood at, and the columns of what was evaluated there, where known."""

    @property
    def filename(self) -> str: ...
    @property
    def line(self) -> int: ...
    @property
    def columns(self) -> tuple[int, int, int, int] | None: ...


class Recorded(Protocol):
    """A node of the graph, the function of torch's that made it ("": not known), the place of the
    operand at fault (-1: not known), and the lines, innermost first."""

    @property
    def frames(self) -> Sequence[Line]: ...
    @property
    def node(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def operand(self) -> int: ...


@dataclass(frozen=True, eq=False)
class Operation:
    """`text` is the expression at `place`, `operand` the part of it at fault; `chain` holds the
    user's outer lines.  `read` are the names of values in the operand, itself where it is one,
    `given` those that the result gets."""

    place: Place
    text: str
    is_operator: bool = False
    operand: ast.expr | None = None
    operand_place: Place | None = None
    chain: tuple[Place, ...] = ()
    read: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    node: ast.expr | ast.stmt | None = None


def operation_at(program: Program, origin: Recorded) -> Operation | None:
    """None where no line of the user's is known."""
    known = [(s, r) for r in origin.frames if (s := program.source(r.filename)) is not None]
    if not known:
        return None
    (source, at), *outer = known
    node = source.node_of(at.columns) or operation_named(source, at.line, origin.node)
    chain = tuple(s.place(r.line) for s, r in reversed(outer))
    if node is None:
        place = source.place(at.line)
        return Operation(place, place.source, chain=chain)
    place = source.place(node.lineno, None, node)
    operand = _operand(node, origin)
    return Operation(
        place,
        source.segment(node) or ast.unparse(node),
        isinstance(node, (ast.BinOp, ast.UnaryOp, ast.AugAssign)),
        operand,
        None if operand is None else source.place(operand.lineno, None, operand),
        chain,
        () if operand is None else _read(operand),
        _given(source, node),
        node,
    )


def _read(operand: ast.expr) -> tuple[str, ...]:
    """The names and attributes that an expression reads, outermost first."""
    if isinstance(operand, (ast.Name, ast.Attribute)):
        return (ast.unparse(operand),)
    called = {id(n.func) for n in ast.walk(operand) if isinstance(n, ast.Call)}
    names = [n.id for n in ast.walk(operand) if isinstance(n, ast.Name) and id(n) not in called]
    return tuple(dict.fromkeys(n for n in names if n not in _NAMESPACES))


def _given(source: Source, node: ast.AST) -> tuple[str, ...]:
    """`dist` of `dist = torch.sqrt(…)`"""
    statement = source.parents.get(node)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return tuple(ast.unparse(t) for t in targets if isinstance(t, (ast.Name, ast.Attribute)))


def _operand(node: ast.expr | ast.stmt, origin: Recorded) -> ast.expr | None:
    found = operands(node)
    # `1 / x` is x.__rtruediv__(1), or a reciprocal
    if isinstance(node, ast.BinOp) and origin.name.startswith("__r"):
        found.reverse()
    elif isinstance(node, ast.BinOp) and origin.node.startswith("Reciprocal"):
        found = [node.right]
    return found[origin.operand] if 0 <= origin.operand < len(found) else None


def operands(node: ast.AST | None) -> list[ast.expr]:
    """What an operator or a function of torch's is given; of a method its tensor is the first."""
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.UnaryOp):
        return [node.operand]
    if not isinstance(node, ast.Call) or any(isinstance(a, ast.Starred) for a in node.args):
        return []
    return [*_receiver(node), *node.args]


def _receiver(call: ast.Call) -> tuple[ast.expr, ...]:
    """`x` of `x.sqrt()`."""
    if not isinstance(call.func, ast.Attribute):
        return ()
    first = ast.unparse(call.func.value).partition(".")[0]
    return () if first in _NAMESPACES else (call.func.value,)
