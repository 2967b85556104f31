"""Pieces of Python syntax that following a value needs; pure functions on `ast` nodes."""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator, Sequence

from ...program import Source
from .reaching_definitions import (
    FUNCTIONS,
    BindingIndex,
    Body,
    Each,
    FunctionNode,
    Part,
    constant_of,
    key_of,
)


def returns(body: Body) -> list[ast.expr]:
    """The expressions a function returns (or yields), last one first."""
    if isinstance(body, ast.Lambda):
        return [body.body]
    nodes = [n for s in statements_of(body) for n in _shallow(s)]
    found = [n.value for n in nodes if isinstance(n, (ast.Return, ast.Yield)) and n.value]
    return list(reversed(found))


def parameters(body: FunctionNode) -> list[str]:
    a = body.args
    named = [*a.posonlyargs, *a.args, *a.kwonlyargs]
    extra = [x for x in (a.vararg, a.kwarg) if x is not None]
    return [x.arg for x in (*named, *extra)]


def first_parameter(body: FunctionNode) -> str:
    positional = [*body.args.posonlyargs, *body.args.args]
    return positional[0].arg if positional else ""


def defaults(body: FunctionNode) -> list[ast.expr]:
    return [*body.args.defaults, *(d for d in body.args.kw_defaults if d is not None)]


def bound_argument(body: FunctionNode, call: ast.Call, name: str) -> ast.expr | None:
    """The argument or default for a parameter, `self` taken into account."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    positional = [a.arg for a in (*body.args.posonlyargs, *body.args.args)]
    if name in positional:
        bound_self = bool(positional) and positional[0] in ("self", "cls")
        if name == positional[0] and bound_self:
            return call.func.value if isinstance(call.func, ast.Attribute) else call.func
        place = positional.index(name) - bound_self
        if place < len(call.args) and not any(
            isinstance(a, ast.Starred) for a in call.args[: place + 1]
        ):
            return call.args[place]
        behind = len(positional) - positional.index(name)
        if behind <= len(body.args.defaults):
            return body.args.defaults[-behind]
    for parameter, default in zip(body.args.kwonlyargs, body.args.kw_defaults, strict=False):
        if parameter.arg == name and default is not None:
            return default
    return None


def definition(source: Source, code: types.CodeType) -> tuple[Source, FunctionNode] | None:
    for node in ast.walk(source.tree):
        if not isinstance(node, FUNCTIONS):
            continue
        name = getattr(node, "name", "<lambda>")
        lines = [d.lineno for d in getattr(node, "decorator_list", ())] + [node.lineno]
        if name == code.co_name and min(lines) == code.co_firstlineno:
            return source, node
    return None


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


def inserted(
    statement: ast.stmt, key: str, part: Part
) -> Iterator[tuple[ast.expr, tuple[Part, ...]]]:
    """Values that one statement puts into the container `key` under `part`."""
    for target, value, path in stored(statement):
        if isinstance(target, ast.Subscript) and key_of(target.value) == key:
            constant = constant_of(target.slice)
            if constant is None or part in (constant, Each.VALUE, Each.ITEM):
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
    name = getattr(
        getattr(node, "func", None), "id", getattr(getattr(node, "func", None), "attr", "")
    )
    return name in ("list", "dict", "defaultdict", "deque", "OrderedDict", "set") and not (
        name in ("list", "set", "deque") and bool(getattr(node, "args", None))
    )


def declares_global(body: Body, name: str) -> bool:
    return any(isinstance(s, ast.Global) and name in s.names for s in statements_of(body))


def is_method(body: Body, index: BindingIndex) -> bool:
    return index.class_of(body) is not None


def is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
