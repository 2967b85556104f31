"""The expression of the user's that an operation was written as, and its operand."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from autograd_explain.inspect.facts.nan_source import operation_named
from autograd_explain.model import Place
from autograd_explain.program import Program, Source

if TYPE_CHECKING:
    from autograd_explain.verification import NonFinite
    from autograd_explain.verification.plan import CodeRange

#: What functions are called on that are no tensors.
_NAMESPACES = frozenset({"torch", "F", "nn", "functional"})


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

    def tells(self, function: str) -> bool:
        """Whether the expression shows which function of torch's it is."""
        return self.is_operator or function.strip("_") in self.text


def operation_at(program: Program, origin: NonFinite) -> Operation | None:
    """None where no line of the user's is known."""
    known = [(s, r) for r in origin.frames if (s := program.source(r.filename)) is not None]
    if not known:
        return None
    (source, at), *outer = known
    node = _node(source, at) or operation_named(source, at.line, origin.node)
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


def _node(source: Source, at: CodeRange) -> ast.expr | ast.stmt | None:
    """The innermost expression or statement with exactly this range."""
    found = [
        n
        for n in source.nodes
        if isinstance(n, (ast.expr, ast.stmt))
        and (n.lineno, n.end_lineno, n.col_offset, n.end_col_offset) == at.columns
    ]
    return next((n for n in found if isinstance(n, ast.expr)), found[0] if found else None)


def _operand(node: ast.expr | ast.stmt, origin: NonFinite) -> ast.expr | None:
    operands: Sequence[ast.expr] = ()
    if isinstance(node, ast.BinOp):
        operands = (node.left, node.right)
        if origin.name.startswith("__r"):  # `1 / x` is x.__rtruediv__(1)
            operands = (node.right, node.left)
    elif isinstance(node, ast.UnaryOp):
        operands = (node.operand,)
    elif isinstance(node, ast.Call) and not any(isinstance(a, ast.Starred) for a in node.args):
        operands = (*_receiver(node), *node.args)
    return operands[origin.operand] if 0 <= origin.operand < len(operands) else None


def _receiver(call: ast.Call) -> tuple[ast.expr, ...]:
    """`x` of `x.sqrt()`."""
    if not isinstance(call.func, ast.Attribute):
        return ()
    first = ast.unparse(call.func.value).partition(".")[0]
    return () if first in _NAMESPACES else (call.func.value,)
