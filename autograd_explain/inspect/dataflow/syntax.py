"""Pieces of Python syntax that following a value needs; pure functions on `ast` nodes."""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator, Sequence

from ...arguments import FunctionNode, positional_parameters
from ...program import Source, called_name
from ...program_index import functions_of
from .reaching_definitions import (
    FUNCTIONS,
    BindingIndex,
    Body,
    Each,
    Part,
    constant_of,
    key_of,
)

#: Constructors of tensors that hold numbers alone until something is written into them.
FACTORIES = frozenset(
    """zeros ones empty full zeros_like ones_like empty_like full_like
    new_zeros new_ones new_empty new_full""".split()
)
#: Methods that put one value into a container, those of common classes of users too.
PUTS = frozenset({"append", "appendleft", "add", "insert", "push", "put", "enqueue"})


def returns(body: Body) -> list[ast.expr]:
    """The expressions a function returns (or yields), last one first."""
    if isinstance(body, ast.Lambda):
        return [body.body]
    nodes = [n for s in statements_of(body) for n in _shallow(s)]
    found = [n.value for n in nodes if isinstance(n, (ast.Return, ast.Yield)) and n.value]
    return list(reversed(found))


def first_parameter(body: FunctionNode) -> str:
    return next(iter(positional_parameters(body)), "")


def definition(source: Source, code: types.CodeType) -> tuple[Source, FunctionNode] | None:
    """The function of the source that a code object was compiled from."""
    found = functions_of(source.tree, code)
    return (source, found[0]) if found else None


def head_name(node: ast.AST) -> str:
    """`value` of `value.rows[0].clone().numpy()`; "" where no name stands in front."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def bodies(tree: ast.Module) -> Iterator[Body]:
    yield tree
    for node in ast.walk(tree):
        if isinstance(node, FUNCTIONS) and not isinstance(node, ast.Lambda):
            yield node


def statements_of(body: Body) -> Iterator[ast.stmt]:
    """All statements of a function or module in source order, nested definitions left out."""
    pending: list[ast.AST] = list(body.body) if isinstance(body.body, list) else []
    while pending:
        node = pending.pop(0)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        if isinstance(node, ast.stmt):
            yield node
        inner = [
            c
            for c in ast.iter_child_nodes(node)
            if isinstance(c, (ast.stmt, ast.ExceptHandler, ast.match_case))
        ]
        pending[:0] = inner


def _shallow(statement: ast.stmt) -> Iterator[ast.AST]:
    """The nodes of one statement without its inner statements and lambdas."""
    pending: list[ast.AST] = [statement]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(
            c
            for c in ast.iter_child_nodes(node)
            if not isinstance(c, (ast.stmt, ast.Lambda, ast.ExceptHandler))
        )


def stored(statement: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr, tuple[Part, ...]]]:
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            if isinstance(target, (ast.Tuple, ast.List)):
                yield from ((t, statement.value, (i,)) for i, t in enumerate(target.elts))
            else:
                yield target, statement.value, ()
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        yield statement.target, statement.value, ()


def container_of(node: ast.expr) -> ast.expr:
    """`x` of `x[0][1]`; anything but an item itself."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node


def taken_apart(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """A target with its value: `a, b = x, y` are two."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        return list(zip(target.elts, value.elts, strict=False))
    return [(target, value)]


def inserted(
    statement: ast.stmt, key: str, part: Part, length: int = 0
) -> Iterator[tuple[ast.expr | ast.AugAssign, tuple[Part, ...]]]:
    """Values that one statement puts into the container `key` under `part`; `length` is that of a
    list, where known."""
    added = isinstance(statement, ast.AugAssign) and [(statement.target, statement, ())]
    for target, value, path in added or stored(statement):
        if isinstance(target, ast.Subscript) and key_of(target.value) == key:
            constant = constant_of(target.slice)
            same = _from_start(constant, length) == _from_start(part, length)
            if constant is None or same or isinstance(part, Each):
                yield value, path
    for node in _shallow(statement):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        if key_of(node.func.value) != key or not node.args:
            continue
        if node.func.attr in ("append", "add", "appendleft") and not isinstance(part, str):
            yield node.args[0], ()
        elif node.func.attr in ("insert", "setdefault") and len(node.args) > 1:
            yield node.args[1], ()
        elif node.func.attr in ("extend", "update"):
            yield node.args[0], (Each.ITEM if node.func.attr == "extend" else part,)


def _from_start(part: Part | None, length: int) -> Part | None:
    """1 for the -1 of a list of two."""
    return part + length if isinstance(part, int) and part < 0 else part


def pick(elements: Sequence[ast.expr], part: Part) -> list[ast.expr]:
    if isinstance(part, int):
        return [elements[part]] if -len(elements) <= part < len(elements) else []
    return list(elements) if isinstance(part, Each) else []


def pick_value(node: ast.Dict, part: Part) -> list[ast.expr]:
    if part is Each.VALUE:
        return list(node.values)
    pairs = zip(node.keys, node.values, strict=False)
    return [v for k, v in pairs if k is not None and constant_of(k) == part]


def inner_expressions(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.Subscript):
        return [node.value]
    if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp)):
        return [node.elt]
    if isinstance(node, ast.DictComp):
        return [node.value]
    if isinstance(node, ast.Lambda):
        return []
    return [c for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr)]


def is_container(node: ast.AST) -> bool:
    """An empty display or constructor that parts are put into later."""
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return not node.elts
    if isinstance(node, ast.Dict):
        return not node.keys
    name = called_name(node)
    return name in ("list", "dict", "defaultdict", "deque", "OrderedDict", "set") and not (
        name in ("list", "set", "deque") and bool(getattr(node, "args", None))
    )


def declares(body: Body, name: str, *kinds: type[ast.Global] | type[ast.Nonlocal]) -> bool:
    """Whether a function says that a name is not its own: `global`, `nonlocal`."""
    return any(isinstance(s, kinds) and name in s.names for s in statements_of(body))


def names_in(node: ast.AST) -> Iterator[ast.Name]:
    return (n for n in ast.walk(node) if isinstance(n, ast.Name))


def attributes_in(value: ast.expr) -> set[str]:
    """The attributes that an expression reads, as they are written: `self.k`."""
    return {ast.unparse(n) for n in ast.walk(value) if isinstance(n, ast.Attribute)}


def is_method(body: Body, index: BindingIndex) -> bool:
    return index.class_of(body) is not None


def is_none(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
