"""Whether a name of the program may stand for an array of NumPy's, by what it is given."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...arguments import bound_arguments, default, parameters
from ...program import Program, Source, called_name, last_name, own_nodes
from ...program_index import index_of
from ..engine.imports import Imports

#: What NumPy only asks of any object, and what gives one number.
_NO_FUNCTION = frozenset({"shape", "ndim", "size"})
_NUMBERS = frozenset({"len", "int", "float", "item"})
#: Methods that are called by the name of an object.
_BY_OBJECT = frozenset({"__call__", "forward"})
_Node = tuple[ast.AST, Imports]


def may_be_array(program: Program, name: str) -> bool:
    """Whether a statement, a call or what a function returns gives an array to this name (or
    attribute, or parameter), directly or by other names."""
    nodes = list(_nodes(program))
    seen, pending = set[str](), [name]
    while pending:
        name = pending.pop()
        if name in seen:
            continue
        seen.add(name)
        for node, imports in nodes:
            for value in _given(node, nodes, name):
                if any(_is_array(n, imports) for n in _parts(value)):
                    return True
                pending += (last for n in _parts(value) if (last := last_name(n)) != "self")
    return False


def is_numpy_call(imports: Imports, node: ast.AST) -> bool:
    """`np.exp(a)`; not what NumPy only asks of any object (`np.shape(a)`)."""
    if not isinstance(node, ast.Call) or called_name(node) in _NO_FUNCTION:
        return False
    function = ast.unparse(node.func)
    return "(" not in function and imports.full(function).startswith("numpy.")


def _nodes(program: Program) -> Iterator[_Node]:
    imports: dict[Source, Imports] = {}
    for source, node in index_of(program).nodes(ast.AST):
        if source not in imports:
            imports[source] = Imports.of(program, source)
        yield node, imports[source]


def _given(node: ast.AST, nodes: list[_Node], name: str) -> Iterator[ast.expr]:
    """The values that a node gives to a name."""
    if isinstance(node, ast.Assign):
        if any(last_name(leaf) == name for target in node.targets for leaf in _leaves(target)):
            yield node.value
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        yield from _arguments(node, nodes, name)
        if node.name == name:
            returns = (n for n in own_nodes(node) if isinstance(n, ast.Return))
            yield from (r.value for r in returns if r.value is not None)


def _leaves(target: ast.expr) -> Iterator[ast.expr]:
    if isinstance(target, (ast.Tuple, ast.List)):
        for element in target.elts:
            yield from _leaves(element)
    else:
        yield target.value if isinstance(target, (ast.Starred, ast.Subscript)) else target


def _arguments(
    function: ast.FunctionDef | ast.AsyncFunctionDef, nodes: list[_Node], name: str
) -> Iterator[ast.expr]:
    """What the calls of a function give for a parameter of it."""
    if name not in parameters(function):
        return
    value = default(function, name)
    if value is not None:
        yield value
    owners = {n.name for n, _ in nodes if isinstance(n, ast.ClassDef) and function in n.body}
    called = owners if function.name == "__init__" else {function.name}
    for call in (n for n, _ in nodes if isinstance(n, ast.Call)):
        if called_name(call) in called or function.name in _BY_OBJECT:
            given = bound_arguments(function, call).get(name)
            yield from () if given is None else (given,)


def _parts(value: ast.AST) -> Iterator[ast.expr]:
    """The names, attributes and calls in a value, but for what only counts."""
    if isinstance(value, ast.Call) and called_name(value) in _NUMBERS:
        return
    if isinstance(value, (ast.Attribute, ast.Name, ast.Call)):
        yield value
    for child in ast.iter_child_nodes(value):
        yield from _parts(child)


def _is_array(node: ast.expr, imports: Imports) -> bool:
    if isinstance(node, ast.Call):
        return called_name(node) == "numpy"
    return imports.full(ast.unparse(node)).startswith("numpy.")
