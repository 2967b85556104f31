"""What an expression does to the gradient, told from its text and the live callable.

Each claim was tried on torch 2.13; `None` means that gradient passes (or that nothing is known).
"""

from __future__ import annotations

import ast
from enum import Enum
from typing import Any

from ...arguments import bind, given_by, values_given
from ...program import called_name, last_name
from . import safe_lookup
from .expression import ExprAt
from .protocol import Slicing


class CutKind(str, Enum):
    """How a value lost its gradient."""

    NUMBER = "number"  #: `.item()`, `float(x)`: a Python number has no graph
    DETACH = "detach"  #: `.detach()`, `.data`, `.state_dict()`
    NUMPY = "numpy"  #: NumPy knows no graph
    COPY = "copy"  #: `torch.tensor(x)` copies values only
    COMPARE = "compare"  #: `x > 0.5` is piecewise constant, torch defines no gradient
    INTEGER = "integer"  #: argmax, `.long()`: integers cannot require grad
    SAMPLE = "sample"  #: `.sample()` draws without a path back
    GRADIENT = "gradient"  #: autograd.grad, functional.jacobian without create_graph
    NO_GRAD = "no_grad"  #: computed while gradient recording was off
    FROZEN = "frozen"  #: every parameter it used has requires_grad=False


_NUMBER = frozenset({"item", "tolist"})
_NUMBER_BUILTINS = frozenset({"float", "int", "bool", "complex", "round"})
_DETACH = frozenset({"detach", "detach_"})
_COMPARE = frozenset({
    "eq", "ne", "gt", "lt", "ge", "le", "greater", "less", "isclose", "equal", "isnan", "isinf",
    "logical_and", "logical_or", "logical_not", "logical_xor", "not_equal", "greater_equal",
    "less_equal", "isfinite", "signbit", "allclose",
})  # fmt: skip
_INTEGER = frozenset({
    "argmax", "argmin", "argsort", "argwhere", "nonzero", "bincount", "bucketize", "searchsorted",
    "one_hot", "count_nonzero", "long", "int", "bool", "byte", "short", "char", "multinomial",
    "histc",
})  # fmt: skip
_WITH_INDICES = frozenset({"max", "min", "topk", "sort", "median", "mode", "kthvalue", "cummax"})
_INTEGER_TYPES = frozenset({
    "long", "int", "int8", "int16", "int32", "int64", "uint8", "bool", "short", "LongTensor",
    "IntTensor", "BoolTensor", "ByteTensor",
})  # fmt: skip
_COPIES = frozenset({
    "tensor", "Tensor", "FloatTensor", "DoubleTensor", "new_tensor", "from_numpy", "scalar_tensor",
    "Parameter",
})  # fmt: skip
_SAMPLES = frozenset({"sample", "bernoulli", "poisson"})
_SHAPE = frozenset({"size", "numel", "dim", "ndimension", "element_size", "stride", "is_leaf"})
_NEW = frozenset({"new_zeros", "new_ones", "new_empty", "new_full"})
_SHAPE_ATTRIBUTES = frozenset({
    "shape", "ndim", "dtype", "device", "requires_grad", "is_leaf", "grad_fn", "names", "layout",
})  # fmt: skip
NUMERIC_LIBRARIES = ("numpy", "scipy", "sklearn", "pandas", "math", "cupy")


def is_about_shape(node: ast.AST) -> bool:
    """Whether an expression only asks for a tensor's form, never its values."""
    if isinstance(node, ast.Call):
        name = called_name(node)
        made = name.endswith("_like") or name in _NEW  # `torch.zeros_like(x)`, `x.new_zeros(3)`
        return made or name in _SHAPE or name in ("len", "range", "isinstance")
    return isinstance(node, ast.Attribute) and node.attr in _SHAPE_ATTRIBUTES


def cut_of(slicer: Slicing, spot: ExprAt) -> CutKind | None:
    """How an expression cuts the gradient of what it reads."""
    node = spot.node
    if isinstance(node, ast.Compare):
        identity = all(isinstance(o, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for o in node.ops)
        return None if identity else CutKind.COMPARE
    if isinstance(node, ast.JoinedStr):
        return CutKind.NUMBER
    if isinstance(node, ast.Attribute):
        return _of_attribute(node)
    if isinstance(node, ast.Call) and spot.callable is not None:
        function = slicer.value(spot.callable)
        return None if safe_lookup.is_module(function) else _of_call(spot, node, function)
    return None


def _of_attribute(node: ast.Attribute) -> CutKind | None:
    if node.attr == "data":
        return CutKind.DETACH
    if node.attr == "grad":
        return CutKind.GRADIENT
    return CutKind.INTEGER if node.attr == "indices" else None


def _of_call(spot: ExprAt, node: ast.Call, function: Any) -> CutKind | None:
    name = spot.called
    if _is_foreign(function):
        return None  # `space.sample()` of another library is no operation of torch's
    if isinstance(node.func, ast.Name) and name in _NUMBER_BUILTINS:
        return CutKind.NUMBER
    if _library(function) in NUMERIC_LIBRARIES:
        return CutKind.NUMBER if _library(function) == "math" else CutKind.NUMPY
    if name == "numpy" or name == "__array__":
        return CutKind.NUMPY
    if takes_derivative(function):
        return None if _keeps_graph(node, function) else CutKind.GRADIENT
    if name == "state_dict":
        return None if _is_true(node, "keep_vars") else CutKind.DETACH
    for names, kind in (
        (_NUMBER, CutKind.NUMBER),
        (_DETACH, CutKind.DETACH),
        (_COMPARE, CutKind.COMPARE),
        (_INTEGER, CutKind.INTEGER),
        (_COPIES, CutKind.COPY),
        (_SAMPLES, CutKind.SAMPLE),
    ):
        if name in names:
            return kind
    if name in _WITH_INDICES and spot.path[:1] == (1,):
        return CutKind.INTEGER
    if name in ("to", "type", "type_as"):
        return CutKind.INTEGER if _names_integer_type(node) else None
    if name == "as_tensor" and node.args and isinstance(node.args[0], (ast.List, ast.ListComp)):
        return CutKind.COPY
    return None


def takes_derivative(function: Any) -> bool:
    """Whether a live callable is `torch.autograd.grad`, or `jacobian` and its like."""
    if not safe_lookup.is_function(function):
        return False
    alone = (function.__module__, function.__name__) == ("torch.autograd", "grad")
    return bool(alone or function.__module__ == "torch.autograd.functional")


def _keeps_graph(node: ast.Call, function: Any) -> bool:
    """By keyword, or by position, as `hessian(f, x, True)` says it."""
    code = function.__code__
    given = bind(code.co_varnames[: code.co_argcount], given_by(node)).get("create_graph")
    return given is not None and not _is_false(given)


def _is_foreign(function: Any) -> bool:
    """Whether a live callable is neither torch's nor one of a library whose effect is known."""
    known = ("torch", "builtins", *NUMERIC_LIBRARIES)
    return function is not safe_lookup.MISSING and _library(function) not in known


def _library(function: Any) -> str:
    """The package of a live callable (`numpy` for a ufunc, too)."""
    module = getattr(type(function), "__module__", "") or ""
    own = getattr(function, "__module__", None)
    return str(own or module).split(".")[0].lstrip("_")


def _names_integer_type(node: ast.Call) -> bool:
    for argument in (*node.args, *(k.value for k in node.keywords if k.arg in (None, "dtype"))):
        name = last_name(argument)
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            name = argument.value.rsplit(".", 1)[-1]
        if name in _INTEGER_TYPES:
            return True
    return False


def _is_true(node: ast.Call, keyword: str) -> bool:
    """Whether a keyword is given and not a literal False."""
    return any(k.arg == keyword and not _is_false(k.value) for k in node.keywords)


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not node.value


def makes_leaf(node: ast.AST) -> bool:
    """Whether an expression makes a tensor that requires grad by itself."""
    if not isinstance(node, ast.Call):
        return False
    name = called_name(node)
    if name == "Parameter":
        return not any(k.arg == "requires_grad" and _is_false(k.value) for k in node.keywords)
    if name == "requires_grad_":
        given = values_given(node)
        return not (given and _is_false(given[0]))
    return _is_true(node, "requires_grad")
