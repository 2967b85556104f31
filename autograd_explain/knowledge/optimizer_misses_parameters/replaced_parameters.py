"""Calls that put new parameter objects into a module."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from autograd_explain.model import Place
from autograd_explain.program import Program, Source, called_name
from autograd_explain.program_index import index_of

#: Functions that exchange a parameter of the module they are given first.
_OF_ARGUMENT = frozenset({
    "weight_norm", "spectral_norm", "remove_weight_norm", "l1_unstructured", "random_unstructured",
    "ln_structured", "random_structured", "custom_from_mask",
})  # fmt: skip


def exchanges(program: Program, owner: str) -> Iterator[Place]:
    """`net.load_state_dict(state, assign=True)`, `weight_norm(net.fc)` and the like for a module,
    in the order of the program."""
    for source, node in index_of(program).nodes(ast.Call, each_run=True):
        if _concerns(node, owner):
            yield _place(source, node)


def assigns(node: ast.AST) -> bool:
    """Whether a call is `load_state_dict(…, assign=True)`."""
    if not isinstance(node, ast.Call) or called_name(node) != "load_state_dict":
        return False
    flag = next((k.value for k in node.keywords if k.arg == "assign"), None)
    return isinstance(flag, ast.Constant) and flag.value is True


def _concerns(node: ast.Call, owner: str) -> bool:
    if assigns(node) or called_name(node) == "to_empty":
        return isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) == owner
    given = node.args[0] if node.args else None
    known = called_name(node) in _OF_ARGUMENT
    return known and given is not None and ast.unparse(given) == owner


def _place(source: Source, node: ast.Call) -> Place:
    return source.place(node.lineno, None, node)
