"""What a write through `.data` does to the derivative, as far as its text shows it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from enum import Enum

from ..expressions import Spot

# Operations whose derivative says something; the values of others (sign, round, a sample) are
# often put behind autograd's back on purpose, for the gradient to pass straight through.
_KNOWN = frozenset(
    {
        *("abs", "add", "clamp", "clamp_max", "clamp_min", "clip", "clone", "cos", "detach"),
        *("div", "exp", "fill", "float", "full_like", "log", "masked_fill", "max", "mean", "min"),
        *("mul", "neg", "norm", "normalize", "ones_like", "permute", "pow", "relu", "reshape"),
        *("sigmoid", "sin", "size", "softmax", "sqrt", "square", "std", "sub", "sum", "t", "tanh"),
        *("transpose", "view", "where", "zero", "zeros_like"),
    }
)
_ADDS = ("add", "sub")


class Derivative(Enum):
    """Of the new value by the old one."""

    ONE = "one"  #: what is added does not depend on the tensor: the gradient is right
    OTHER = "other"
    UNKNOWN = "unknown"


def derivative_of(spot: Spot) -> Derivative:
    """The derivative of the write at a spot."""
    statement = spot.statement
    if isinstance(statement, ast.AugAssign):
        return _added(statement) if _adds(statement.op) else Derivative.OTHER
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        return _assigned(statement.targets[0], statement.value)
    call = spot.node
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        return _called(call, call.func)
    return Derivative.UNKNOWN


def _added(statement: ast.AugAssign) -> Derivative:
    if isinstance(statement.target, ast.Subscript):
        tensor = _tensor(statement.target.value)
    else:
        tensor = _tensor(statement.target)
    return Derivative.UNKNOWN if _reads(statement.value, tensor) else Derivative.ONE


def _assigned(target: ast.expr, value: ast.expr) -> Derivative:
    """`h.data = value` and `h.data[mask] = value`."""
    part = isinstance(target, ast.Subscript)
    tensor = _tensor(target.value if isinstance(target, ast.Subscript) else target)
    if not part and _is_shifted(value, tensor):
        return Derivative.ONE
    if not all(name in _KNOWN for name in _calls(value)):
        return Derivative.UNKNOWN
    # Other values altogether may be earlier ones that are put back.
    return Derivative.OTHER if part or _reads(value, tensor) else Derivative.UNKNOWN


def _is_shifted(value: ast.expr, tensor: str) -> bool:
    """`h + noise`, `noise + h` and `h - noise`."""
    if not isinstance(value, ast.BinOp) or not _adds(value.op):
        return False
    left, right = _tensor(value.left) == tensor, _tensor(value.right) == tensor
    if left:
        return not _reads(value.right, tensor)
    return right and isinstance(value.op, ast.Add) and not _reads(value.left, tensor)


def _called(call: ast.Call, function: ast.Attribute) -> Derivative:
    """`h.data.mul_(2)`."""
    name = function.attr.removesuffix("_")
    tensor = _tensor(function.value)
    values = [*call.args, *(k.value for k in call.keywords)]
    if name == "copy" and values:
        return _assigned(function.value, values[0])
    if name in _ADDS and not any(_reads(v, tensor) for v in values):
        return Derivative.ONE
    return Derivative.OTHER if name in _KNOWN else Derivative.UNKNOWN


def _adds(operator: ast.operator) -> bool:
    return isinstance(operator, (ast.Add, ast.Sub))


def _tensor(node: ast.expr) -> str:
    """`h` of `h.data` and `h.detach()`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return ast.unparse(node.func.value) if node.func.attr == "detach" else ast.unparse(node)
    if isinstance(node, ast.Attribute) and node.attr == "data":
        return ast.unparse(node.value)
    return ast.unparse(node)


def _reads(value: ast.expr, tensor: str) -> bool:
    named = (ast.Name, ast.Attribute)
    return any(ast.unparse(n) == tensor for n in ast.walk(value) if isinstance(n, named))


def _calls(value: ast.expr) -> Iterator[str]:
    for node in ast.walk(value):
        if isinstance(node, ast.Call):
            function = node.func
            yield function.attr if isinstance(function, ast.Attribute) else ast.unparse(function)
