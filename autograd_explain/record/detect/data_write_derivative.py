"""What a write through `.data` does to the derivative, as far as its text shows it."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from enum import Enum

from ...arguments import values_given
from ..observe.code_positions import CodePosition

# Operations whose derivative says something; the values of others (sign, round, a sample) are
# often put behind autograd's back on purpose, for the gradient to pass straight through.
_KNOWN = frozenset(
    {
        *("abs", "add", "clamp", "clamp_max", "clamp_min", "clip", "clone", "cos", "detach"),
        *("div", "exp", "fill", "float", "full_like", "log", "masked_fill", "max", "mean", "min"),
        *("mul", "neg", "norm", "normalize", "ones_like", "permute", "pow", "relu", "reshape"),
        *("sigmoid", "sin", "size", "softmax", "sqrt", "square", "std", "sub", "sum", "t", "tanh"),
        *("copy", "transpose", "view", "where", "zero", "zeros_like"),
    }
)
_ADDS = ("add", "sub")
#: These give the same values, as far as their type can hold them.
_SAME = frozenset(
    {"clone", "contiguous", "detach", "float", "double", "half", "bfloat16", "cpu", "cuda"}
)
#: What is read of a tensor here does not come from its values; `.grad` is another tensor.
_FACTS = frozenset({"shape", "dtype", "device", "ndim", "grad", "requires_grad", "layout"})
_FACT_CALLS = frozenset({"size", "dim", "numel", "len", "stride", "element_size"})
#: Values by steps: their derivative is nothing, so that a gradient through them is meant.
_STEPS = (ast.FloorDiv, ast.Mod)


class Derivative(Enum):
    """Of the new value by the old one."""

    ONE = "one"  #: what is added does not depend on the tensor: the gradient is right
    OTHER = "other"
    UNKNOWN = "unknown"


def derivative_of(spot: CodePosition) -> Derivative:
    """The derivative of the write at a spot."""
    statement = spot.statement
    if isinstance(statement, ast.AugAssign):
        return _augmented(statement)
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
        if isinstance(target, (ast.Attribute, ast.Subscript)):
            return _assigned(target, statement.value)
    call = spot.node
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        chain = _chain(call, statement)
        if all(_name(c).removesuffix("_") in _KNOWN for c in chain):
            return _called(call, call.func)
    return Derivative.UNKNOWN


def _augmented(statement: ast.AugAssign) -> Derivative:
    target = statement.target
    tensor = _tensor(target.value if isinstance(target, ast.Subscript) else target)
    if _adds(statement.op):
        return Derivative.UNKNOWN if _reads(statement.value, tensor) else Derivative.ONE
    if isinstance(statement.op, _STEPS) or not _is_smooth(statement.value, tensor):
        return Derivative.UNKNOWN
    return Derivative.OTHER


def _assigned(target: ast.expr, value: ast.expr) -> Derivative:
    """`h.data = value` and `h.data[mask] = value`."""
    part = isinstance(target, ast.Subscript)
    tensor = _tensor(target.value if isinstance(target, ast.Subscript) else target)
    if not part and (_is_shifted(value, tensor) or _is_same(value, tensor)):
        return Derivative.ONE
    if not _is_smooth(value, tensor):
        return Derivative.UNKNOWN
    if isinstance(target, ast.Subscript):
        return _chosen(target.slice, value, tensor)
    # Other values altogether may be earlier ones that are put back.
    return Derivative.OTHER if _reads(value, tensor) else Derivative.UNKNOWN


def _chosen(index: ast.expr, value: ast.expr, tensor: str) -> Derivative:
    """`h.data[index] = value`: where the tensor's own values choose, `h[h < 0] = 0` is a clamp,
    and `h[h > 0] = 1` one of the steps of a quantization."""
    if not _reads(index, tensor):
        return Derivative.OTHER
    compared = index.comparators if isinstance(index, ast.Compare) else []
    bound = len(compared) == 1 and ast.unparse(compared[0]) == ast.unparse(value)
    own = isinstance(index, ast.Compare) and _tensor(index.left) == tensor
    return Derivative.OTHER if bound and own else Derivative.UNKNOWN


def _is_shifted(value: ast.expr, tensor: str) -> bool:
    """`h + noise`, `noise + h` and `h - noise`."""
    if not isinstance(value, ast.BinOp) or not _adds(value.op):
        return False
    left, right = _tensor(value.left) == tensor, _tensor(value.right) == tensor
    if left:
        return not _reads(value.right, tensor)
    return right and isinstance(value.op, ast.Add) and not _reads(value.left, tensor)


def _is_same(value: ast.expr, tensor: str) -> bool:
    """`h.data.clone()` and `h.detach().cpu()`."""
    while _tensor(value) != tensor:
        known = isinstance(value, ast.Call) and _name(value) in _SAME
        if not known or not isinstance(value, ast.Call):
            return False
        if not isinstance(value.func, ast.Attribute):
            return False
        value = value.func.value
    return True


def _called(call: ast.Call, function: ast.Attribute) -> Derivative:
    """`h.data.mul_(2)`."""
    name = function.attr.removesuffix("_")
    tensor = _tensor(base_of_chain(function.value))
    values = values_given(call)
    if name == "copy" and values:
        return _assigned(function.value, values[0])
    if name in _ADDS and not any(_reads(v, tensor) for v in values):
        return Derivative.ONE
    smooth = name in _KNOWN and all(_is_smooth(v, tensor) for v in values)
    return Derivative.OTHER if smooth else Derivative.UNKNOWN


def _chain(call: ast.Call, statement: ast.stmt | None) -> list[ast.Call]:
    """The call, those whose results it was called on, and those called on its result: all of
    `h.data.mul_(127).round_().div_(127)`."""
    chain = [call]
    while isinstance(inner := _receiver(chain[0]), ast.Call):
        chain.insert(0, inner)
    calls = [] if statement is None else [n for n in ast.walk(statement) if isinstance(n, ast.Call)]
    while (outer := next((c for c in calls if _receiver(c) is chain[-1]), None)) is not None:
        chain.append(outer)
    return chain


def _receiver(call: ast.Call) -> ast.expr | None:
    return call.func.value if isinstance(call.func, ast.Attribute) else None


def base_of_chain(node: ast.expr) -> ast.expr:
    """`h.data` of `h.data.mul_(2).add_(1)`."""
    while isinstance(node, ast.Call) and _name(node) != "detach":
        inner = _receiver(node)
        if inner is None:
            break
        node = inner
    return node


def _adds(operator: ast.operator) -> bool:
    return isinstance(operator, (ast.Add, ast.Sub))


def _tensor(node: ast.expr) -> str:
    """`h` of `h.data` and `h.detach()`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return ast.unparse(node.func.value) if node.func.attr == "detach" else ast.unparse(node)
    if isinstance(node, ast.Attribute) and node.attr == "data":
        return ast.unparse(node.value)
    return ast.unparse(node)


def _reads(value: ast.AST, tensor: str) -> bool:
    """Whether the values of a tensor go in; its shape alone (`randn_like(h)`) does not count."""
    if isinstance(value, (ast.Name, ast.Attribute)) and ast.unparse(value) == tensor:
        return True
    if isinstance(value, ast.Attribute) and value.attr in _FACTS:
        return False
    inner: Sequence[ast.AST] = list(ast.iter_child_nodes(value))
    if isinstance(value, ast.Call):
        name = _name(value)
        given = values_given(value)
        if name.endswith("_like"):
            inner = given[1:]
        elif name.startswith("new_"):
            inner = given
        elif name in _FACT_CALLS:
            inner = []
    return any(_reads(node, tensor) for node in inner)


def _is_smooth(value: ast.expr, tensor: str) -> bool:
    """Whether a value depends on the tensor by operations whose derivative says something."""
    for node in ast.walk(value):
        steps = isinstance(node, ast.Compare)
        steps = steps or (isinstance(node, ast.BinOp) and isinstance(node.op, _STEPS))
        steps = steps or (isinstance(node, ast.Call) and _name(node) not in _KNOWN)
        if steps and _reads(node, tensor):
            return False
    return True


def _name(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else ast.unparse(function)
